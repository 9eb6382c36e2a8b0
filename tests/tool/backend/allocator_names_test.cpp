// SPDX-License-Identifier: Apache-2.0
// The meaning of allocators' names that are more than the name of a creation policy.
#include <gmock/gmock.h>

#include <optional>
#include <set>
#include <type_traits>

#include "backend/allocators.hpp"
#include "backend/backend.hpp"
#include "scenarios/scenario.hpp"
#include "workloads/verify/verification.hpp"

namespace warpheap::tool { namespace {

/// The five policies, without their configuration.
std::vector<std::string> policies_of(std::string const& name) {
  return known_allocators::visit(name, [](auto entry) {
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
  asked[bench::options::sizes] = {bytes};
  asked[bench::options::ranges] = {{bytes, bytes}};
  auto const rows = bench::scenario_called("utilisation", *make_host_backend()).run(name, asked);
  EXPECT_EQ(rows.front().fault, "") << name;
  return rows.front().figures.at(0).second;
}

/// The configuration of the creation policy of that name.
template <class Config>
Config config_of(std::string const& name) {
  std::optional<Config> found;
  all_allocators::visit(name, [&](auto entry) {
    using creation = typename decltype(entry)::allocator_type::creation_type;
    if constexpr (requires { creation::config; })
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(creation::config)>, Config>) found = creation::config;
    return 0;
  });
  return found.value();
}

TEST(AllocatorNames, AreOfOneAllocatorEach) {
  std::set<std::string> names;
  auto all = known_allocators::descriptions();
  for (auto const& variant : paper_variants::descriptions()) all.push_back(variant);
  for (auto const& known : all) {
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

TEST(AllocatorNames, OfPapersStandForTheirConfigurations) {
  auto const original = config_of<creation::scatter_config>("scatter_original");
  EXPECT_EQ(original.open_blocks, 1u);
  EXPECT_FALSE(original.reset_freed_pages);
  EXPECT_EQ(config_of<creation::scatter_config>("scatter_picongpu").page_bytes, 256u << 10);
  EXPECT_EQ(config_of<creation::halloc_config>("halloc_one_head").most_rows, 1u);
  EXPECT_EQ(config_of<creation::halloc_config>("halloc_8_slabs").slabs_per_row, 8u);
  EXPECT_EQ(config_of<creation::halloc_config>("halloc_late").replace_at, 950u);
  EXPECT_EQ(config_of<creation::halloc_config>("halloc_early").replace_at, 601u);
  EXPECT_EQ(config_of<creation::rw_malloc_config>("rw_malloc_2_words").words_per_lane, 2u);
  EXPECT_EQ(config_of<creation::rw_malloc_config>("rw_malloc_4_words").words_per_lane, 4u);
  EXPECT_FALSE(config_of<creation::tbuddy_config>("tbuddy_original").shares_requests);
  for (auto const* const name : {"ualloc_original", "throughput_original"}) {
    auto const printed = config_of<creation::ualloc_config>(name);
    EXPECT_FALSE(printed.shares_requests);
    EXPECT_EQ(printed.least_bytes, 8u);
    EXPECT_EQ(printed.idle_bins, 0u);
  }
}

// Blocks are apart and keep what is written, all are freed, and as many can be had as before.
TEST(AllocatorNames, OfPapersFillAPoolToTheLastBlock) {
  verify_settings asked;
  asked.pool_bytes = u64{4} << 20;
  asked.threads = 300;
  asked.repeat = 1;
  for (u64 const bytes : {64, 1000, 8192}) {  // a heap each: scatter_original keeps a size for good
    asked.ranges = {{bytes, bytes}};
    for (auto const& known : paper_variants::descriptions())
      for (auto const& made : make_host_backend()->part<verify_job>().run(known.name, asked))
        EXPECT_EQ(made.fault, "") << known.name << " " << bytes;
  }
}

TEST(AllocatorNames, OfPapersAreTakenByTheScenariosThatSaySo) {
  bench::request asked;
  asked.pool_bytes = u64{4} << 20;
  asked.repeat = 1;
  asked[bench::options::threads] = 40;
  asked[bench::options::rounds] = 1;
  asked[bench::options::sizes] = {64};
  asked[bench::options::workers] = {40};
  asked.values["--left-shares"] = std::vector{0.5};
  asked[bench::options::ranges] = {{64, 256}};
  auto const on = make_host_backend();
  u32 taken = 0;
  for (auto const& scenario : bench::scenarios_of(*on)) {
    if (!scenario.measures_allocators() || scenario.name == "head_replacement") continue;
    if (scenario.measures_variants)
      EXPECT_EQ(bench::scenario_called(scenario.name, *on).run("halloc_late", asked).front().fault, "");
    else
      EXPECT_THROW(bench::scenario_called(scenario.name, *on).run("halloc_late", asked), usage_error) << scenario.name;
    taken += scenario.measures_variants;
  }
  EXPECT_EQ(taken, 6u);
}

// Where freed pages keep their size, a pool that was full of one size has no room for another.
TEST(AllocatorNames, OfScatterAsItWasKeepSizesOfFreedPages) {
  auto const larger_after_smaller = [](std::string const& name) {
    verify_settings asked;
    asked.pool_bytes = u64{1} << 20;
    asked.threads = 300;
    asked.repeat = 1;
    asked.ranges = {{64, 64}, {2048, 2048}};
    return make_host_backend()->part<verify_job>().run(name, asked).at(1).blocks;
  };
  EXPECT_GT(larger_after_smaller("scatter"), 400u);
  EXPECT_EQ(larger_after_smaller("scatter_original"), 0u);
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

}}  // namespace warpheap::tool
