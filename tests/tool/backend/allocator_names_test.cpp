// SPDX-License-Identifier: Apache-2.0
// The meaning of allocators' names that are more than the name of a creation policy.
#include <gmock/gmock.h>

#include <set>

#include "backend/allocators.hpp"
#include "backend/backend.hpp"

namespace warpheap::tool {
namespace {

/// The five policies, without their configuration.
std::vector<std::string> policies_of(std::string const& name) {
  return for_allocator(name, [](auto entry) {
    using made = typename decltype(entry)::allocator_type;
    return std::vector<std::string>{made::creation_type::name, made::distribution_type::name, made::oom_type::name,
                                    made::reserve_pool_type::name, made::alignment_type::name};
  });
}

/// The share of the pool in blocks of `bytes` at the first nullptr.
double utilisation_of(std::string const& name, u64 bytes, u64 pool_bytes = u64{1} << 20) {
  bench::request asked;
  asked.pool_bytes = pool_bytes;
  asked.repeat = 1;
  asked.sizes = {bytes};
  asked.ranges = {{bytes, bytes}};
  auto const rows = make_host_backend()->bench("utilisation", name, asked);
  EXPECT_EQ(rows.front().fault, "") << name;
  return rows.front().figures.at(0).second;
}

TEST(AllocatorNames, AreOfOneAllocatorEach) {
  std::set<std::string> names;
  for (auto const& known : known_allocators::descriptions()) {
    EXPECT_TRUE(names.insert(known.name).second) << known.name;
    EXPECT_NE(known.text, "") << known.name;
  }
}

TEST(AllocatorNames, StandForTheirPolicies) {
  using testing::ElementsAre;
  EXPECT_THAT(policies_of("slab_bitmap"), ElementsAre("slab_bitmap", "none", "return_null", "device_memory", "shrink"));
  EXPECT_THAT(policies_of("slab_bitmap_coalesced"),
              ElementsAre("slab_bitmap", "warp_coalesce", "return_null", "device_memory", "shrink"));
  EXPECT_THAT(policies_of("scatter_coalesced"),
              ElementsAre("scatter", "warp_coalesce", "return_null", "device_memory", "shrink"));
  EXPECT_THAT(policies_of("overflow"), ElementsAre("scatter", "none", "overflow_to", "device_memory", "shrink"));
  EXPECT_THAT(policies_of("host_memory"), ElementsAre("slab_bitmap", "none", "return_null", "host_memory", "shrink"));
  for (auto const* const name : {"rw_malloc_64", "rw_malloc_256"})
    EXPECT_THAT(policies_of(name), ElementsAre("rw_malloc", "none", "return_null", "device_memory", "shrink"));
  EXPECT_THAT(policies_of("throughput_8"), ElementsAre("throughput", "none", "return_null", "device_memory", "shrink"));
  EXPECT_THAT(policies_of("throughput_wide_2048"),
              ElementsAre("throughput_wide", "none", "return_null", "device_memory", "shrink"));
}

TEST(AllocatorNames, OfLongerUnitsRoundUpToThem) {
  EXPECT_DOUBLE_EQ(utilisation_of("rw_malloc_64", 64), 1);
  EXPECT_DOUBLE_EQ(utilisation_of("rw_malloc_64", 16), 0.25);
  EXPECT_DOUBLE_EQ(utilisation_of("rw_malloc_256", 256), 1);
  EXPECT_DOUBLE_EQ(utilisation_of("rw_malloc_256", 64), 0.25);
}

// Where 8 bytes take 16, half of the pool is lost.
TEST(AllocatorNames, OfBlocksOf8BytesLoseNoHalfOfThem) {
  EXPECT_LT(utilisation_of("throughput", 8), 0.5);
  EXPECT_GT(utilisation_of("throughput_8", 8), 0.9);
}

// One of 16 blocks of 2 KiB is the bin's header. Where bins end at 1 KiB, a block of 2 KiB is a
// page of TBuddy's.
TEST(AllocatorNames, OfWideBinsTo2048BytesPayForAHeader) {
  EXPECT_DOUBLE_EQ(utilisation_of("throughput_wide", 2048), 1);
  double const with_headers = utilisation_of("throughput_wide_2048", 2048, u64{32} << 20);
  EXPECT_LE(with_headers, 15.0 / 16);
  EXPECT_GT(with_headers, 0.85);
}

// A quarter of the pool is the first heap's.
TEST(AllocatorNames, OfOverflowHandOutBothHeaps) { EXPECT_GT(utilisation_of("overflow", 1024), 0.9); }

// A part of 16 bytes has a header of as many.
TEST(AllocatorNames, OfCoalescedAllocatorsPayForHeaders) {
  for (std::string const name : {"slab_bitmap_coalesced", "scatter_coalesced"}) {
    EXPECT_LE(utilisation_of(name, 16), 0.5) << name;
    EXPECT_GT(utilisation_of(name, 16), 0.4) << name;
  }
}

}  // namespace
}  // namespace warpheap::tool
