// SPDX-License-Identifier: Apache-2.0
// The setting `shares_requests` of TBuddy, UAlloc and throughput: a warp is served as one, or lane
// by lane. Blocks that a leader shares out lie in the order of the lanes.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/schedules.hpp"
#include "warpheap/all.hpp"

namespace warpheap::test { namespace {

struct take_one_each {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 bytes, void** blocks) const {
    blocks[simt::lane_id()] = heap.malloc(bytes);
  }
};

/// Whether the blocks of the lanes of a warp, which ask together, lie in the order of the lanes,
/// whatever lane runs first.
template <class Creation>
bool serves_a_warp_as_one(u64 bytes) {
  bool in_order = true;
  for (u64 seed = 1; seed <= 8; ++seed) {
    host::scoped_execution const use{{.mode = host::execution_mode::deterministic,
                                      .policy = host::schedule_policy::random_walk,
                                      .masks = host::mask_policy::maximal,
                                      .seed = seed,
                                      .step_cap = step_cap}};
    basic_heap<finely_aligned_allocator<Creation>> heap{u64{8} << 20};
    device_buffer<void*> const blocks(32);
    launch({1, 32}, take_one_each{}, heap.ref(), bytes, blocks.data());
    synchronize();
    auto const all = blocks.to_host();
    EXPECT_EQ(std::count(all.begin(), all.end(), nullptr), 0);
    in_order = in_order && std::is_sorted(all.begin(), all.end());
  }
  return in_order;
}

constexpr creation::tbuddy_config pages_by_lane{.page_bytes = 256, .shares_requests = false},
    pages_by_warp{.page_bytes = 256};
constexpr creation::ualloc_config bins_by_lane{.shares_requests = false};

TEST(SharesRequests, OfTbuddySaysWhetherAWarpIsServedAsOne) {
  EXPECT_TRUE(serves_a_warp_as_one<creation::tbuddy<pages_by_warp>>(256));
  EXPECT_FALSE(serves_a_warp_as_one<creation::tbuddy<pages_by_lane>>(256));
}

TEST(SharesRequests, OfUallocSaysWhetherAWarpIsServedAsOne) {
  EXPECT_TRUE(serves_a_warp_as_one<creation::ualloc<>>(16));
  EXPECT_FALSE(serves_a_warp_as_one<creation::ualloc<bins_by_lane>>(16));
}

TEST(SharesRequests, OfThroughputIsThatOfItsTbuddy) {
  EXPECT_TRUE(serves_a_warp_as_one<creation::throughput<>>(4096));
  EXPECT_FALSE(serves_a_warp_as_one<creation::throughput<bins_by_lane>>(4096));
}

}}  // namespace warpheap::test
