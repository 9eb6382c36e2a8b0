// SPDX-License-Identifier: Apache-2.0
// Warps of 64 lanes: what tests with warp_lanes in place of a number cannot show.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "policy/creation/slab_bitmap/pool_fixture.hpp"
#include "support/schedules.hpp"
#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/policy/distribution/warp_coalesce.hpp"
#include "warpheap/sync/warp_aggregate.hpp"
#include "warpheap/warpheap.hpp"

namespace warpheap { namespace {

static_assert(warp_lanes == 64 && sizeof(lane_mask) == 8 && full_mask == ~u64{0});
static_assert(lane_bit(63) == u64{1} << 63 && lanes_before(64) == full_mask && lanes_before(33) == 0x1'ffff'ffff);

using test::for_each_schedule;
using testing::HasSubstr;

/// What a lane of a warp of 64 learns in collectives of all lanes.
struct meet_as_64 {
  void operator()(u64* results) const {
    u32 const lane = simt::lane_id();
    u64* const mine = results + 5 * global_thread_index();
    mine[0] = simt::ballot(full_mask, lane == 63 || lane == 31);
    mine[1] = simt::shuffle(full_mask, u64{lane} << 40, 40);
    mine[2] = simt::lanes_below();
    mine[3] = simt::match_any(full_mask, lane % 33);
    mine[4] = simt::reduce_or(full_mask, lane == 50 ? 8u : 0u);
  }
};

TEST(Wave64, CollectivesReachLanesBeyond31) {
  for_each_schedule(12, [] {
    device_buffer<u64> const results(5 * 128);
    launch({1, 128}, meet_as_64{}, results.data());
    auto const found = results.to_host();
    for (u32 i = 0; i < 128; ++i) {
      u32 const lane = i % 64;
      EXPECT_EQ(found[5 * i], u64{1} << 63 | u64{1} << 31);
      EXPECT_EQ(found[5 * i + 1], u64{40} << 40);
      EXPECT_EQ(found[5 * i + 2], (u64{1} << lane) - 1);
      u64 const twins = lane < 31 ? u64{1} << (lane + 33) : 0, twin = lane >= 33 ? u64{1} << (lane - 33) : 0;
      EXPECT_EQ(found[5 * i + 3], u64{1} << lane | twins | twin);
      EXPECT_EQ(found[5 * i + 4], 8u);
    }
  });
}

/// The upper half of a warp meets alone, while the lower half waits for all.
struct meet_in_the_upper_half {
  void operator()(u64* results) const {
    u64 const upper = full_mask << 32;
    if (simt::lane_id() >= 32) results[simt::lane_id() - 32] = simt::ballot(upper, simt::lane_id() % 2 == 0);
    simt::sync_warp(full_mask);
  }
};

TEST(Wave64, HalvesOfAWarpMeetByMask) {
  for_each_schedule(12, [] {
    device_buffer<u64> const results(32);
    launch({1, 64}, meet_in_the_upper_half{}, results.data());
    EXPECT_EQ(results.to_host(), std::vector<u64>(32, 0x5555'5555'0000'0000));
  });
}

/// A thread block of 70: lanes and warp of each thread, and the lanes that exist in its warp.
struct note_place {
  void operator()(u64* places) const {
    u64* const mine = places + 3 * simt::thread_index();
    mine[0] = simt::lane_id();
    mine[1] = simt::warp_id();
    mine[2] = simt::ballot(simt::warp_id() == 0 ? full_mask : u64{0x3f}, true);
  }
};

TEST(Wave64, TheLastWarpOf70ThreadsHas6Lanes) {
  for_each_schedule(12, [] {
    device_buffer<u64> const places(3 * 70);
    launch({1, 70}, note_place{}, places.data());
    auto const found = places.to_host();
    for (u32 i = 0; i < 70; ++i) {
      EXPECT_EQ(found[3 * i], i % 64);
      EXPECT_EQ(found[3 * i + 1], i / 64);
      EXPECT_EQ(found[3 * i + 2], i < 64 ? full_mask : 0x3f);
    }
  });
}

struct store_mask {
  void operator()(u64* masks) const { masks[simt::lane_id()] = simt::active_mask(); }
};

TEST(Wave64, RandomActiveMasksLeaveOutAndTakeInEachLane) {
  u64 always = full_mask, ever = 0, without_some = 0;
  for (u64 seed = 0; seed < 200; ++seed) {
    host::scoped_execution const use{
        {.mode = host::execution_mode::deterministic, .masks = host::mask_policy::random, .seed = seed}};
    device_buffer<u64> const masks(64);
    launch({1, 64}, store_mask{}, masks.data());
    u64 const mine = masks[5];
    always &= mine;
    if (mine == full_mask) continue;
    ever |= mine;
    ++without_some;
  }
  EXPECT_EQ(always, u64{1} << 5);
  EXPECT_EQ(ever, full_mask);
  EXPECT_GT(without_some, 20u);
}

struct wait_for_ever {
  void operator()(u32* word) const {
    while (atomic_ref<u32>{*word}.load(order::relaxed) == 0) simt::pause(10);
  }
};

template <class Kernel, class... Arguments>
std::string fault_of(u32 threads, Kernel kernel, Arguments... arguments) {
  try {
    launch({1, threads}, kernel, arguments...);
  } catch (host::schedule_error const& error) {
    return error.what();
  }
  return {};
}

TEST(Wave64, AHangNamesAll64Lanes) {
  for (auto const mode : {host::execution_mode::deterministic, host::execution_mode::parallel}) {
    host::scoped_execution const use{{.mode = mode, .hang_steps = 1 << 10}};
    device_buffer<u32> const word(1);
    EXPECT_THAT(fault_of(64, wait_for_ever{}, word.data()),
                testing::AllOf(HasSubstr("hang: "), HasSubstr("warp 0 lanes {0-63} look again and again at ")));
  }
}

struct miss_lane_63 {
  void operator()() const {
    if (simt::lane_id() != 63) simt::sync_warp(full_mask);
    else simt::sync_warp(lane_bit(63) | 1);
  }
};

TEST(Wave64, ADeadlockNamesTheMasks) {
  EXPECT_THAT(fault_of(64, miss_lane_63{}),
              testing::AllOf(HasSubstr("lanes {0-62} wait in sync_warp(mask {0-63}) for lanes {63}"),
                             HasSubstr("lanes {63} wait in sync_warp(mask {0,63}) for lanes {0}")));
}

/// Every lane takes a block twice and frees both, in one class for all.
struct take_and_free {
  void operator()(test::slab_allocator heap, u64 bytes, void** blocks) const {
    heap.destroy(heap.create(bytes));
    blocks[global_thread_index()] = heap.create(bytes);
  }
};

// The quick paths of a full warp take and clear a whole bitmap word.
TEST(Wave64, AFullWarpTakesAndFreesAWordOfBlocks) {
  for (u64 const bytes : {u64{16}, u64{48}, u64{256}})
    for_each_schedule(24, [&] {
      test::tiny_pool const pool{8};
      device_buffer<void*> const blocks(3 * 64);
      launch({3, 64}, take_and_free{}, pool.allocator(), bytes, blocks.data());
      auto const got = blocks.to_host();
      EXPECT_EQ(std::set<void*>(got.begin(), got.end()).size(), 3u * 64);
      EXPECT_EQ(std::count(got.begin(), got.end(), nullptr), 0);
      pool.expect_quiet(3 * 64);
      test::release(pool, got, {3, 64});
      pool.expect_empty();
    });
}

struct ask_for_small {
  template <class Heap>
  void operator()(Heap heap, u64** blocks) const {
    u64* const block = static_cast<u64*>(heap.malloc_warp(full_mask, 24));
    if (block) *block = global_thread_index();
    blocks[global_thread_index()] = block;
  }
};

// coalesce.P2: a created block has as many sub-blocks as its header has bits.
TEST(Wave64, WarpCoalesceCombines32LanesAtATime) {
  using combining = basic_heap<allocator<creation::slab_bitmap<>, distribution::warp_coalesce, oom::return_null,
                                         reserve_pool::device_memory, alignment::shrink<16>>>;
  for_each_schedule(24, [] {
    combining heap{u64{1} << 20};
    device_buffer<u64*> const blocks(128);
    launch({1, 128}, ask_for_small{}, heap.ref(), blocks.data());
    synchronize();
    auto const got = blocks.to_host();
    for (u64 i = 0; i < 128; ++i) {
      ASSERT_NE(got[i], nullptr);
      EXPECT_EQ(*got[i], i);
    }
    EXPECT_EQ(heap.statistics().live_blocks, 128u);
    EXPECT_EQ(heap.ref().creation().snapshot().statistics().live_blocks, 4u) << "created for two warps";
    EXPECT_TRUE(heap.check_invariants().empty());
  });
}

}}  // namespace warpheap
