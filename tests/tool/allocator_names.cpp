// What the names of allocators stand for that are more than the name of a creation policy.
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

/// The share of the pool that blocks of `bytes` get, by the time of the first nullptr.
double utilisation_of(std::string const& name, u64 bytes) {
  bench::request asked;
  asked.pool_bytes = u64{1} << 20;
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
  EXPECT_THAT(policies_of("rw_malloc_64"), ElementsAre("rw_malloc", "none", "return_null", "device_memory", "shrink"));
}

TEST(AllocatorNames, OfUnitsOf64BytesRoundUpToThem) {
  EXPECT_DOUBLE_EQ(utilisation_of("rw_malloc_64", 64), 1);
  EXPECT_DOUBLE_EQ(utilisation_of("rw_malloc_64", 16), 0.25);
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
