// SPDX-License-Identifier: Apache-2.0
// Lanes that take and free blocks in a pool of a few slabs: what they wrote is there, no lane is
// refused while some block stays free, and all of it is free in the end.
#include "pool_fixture.hpp"

#include <algorithm>

namespace warpheap::test { namespace {

/// Sizes of chunks of 384 bytes, of which a slab holds five blocks of eight.
constexpr halloc_sizes lengths_of_384{.least = 384, .doublings = 3};
constexpr u32 whole_blocks = 5;

// The others take eight blocks in all. Wherever these are, each spoils one of ten places for a
// block of eight chunks.
TEST(HallocChurn, NobodyIsRefusedWhileSomeBlockStaysFree) {
  constexpr launch_shape shapes[] = {{5, 1}, {1, 5}};
  static_assert(2 * whole_blocks > 2 * (5 - 1));
  u64 which = 0, served = 0;
  for_each_schedule(600, [&] {
    halloc_pool<> const pool{2};
    auto const report =
        churned(pool, shapes[which++ % 2], {.rounds = 2, .held_max = 1, .sizes = lengths_of_384, .seed = which});
    EXPECT_EQ(report.refused, 0u);
    EXPECT_EQ(report.broken, 0u);
    served += report.served;
    pool.expect_quiet(0);
  });
  EXPECT_GT(served, 0u);
}

// The others take six blocks in all, each of any kind or as large as a slab, so at any time one
// slab of seven has no owner.
TEST(HallocChurn, NobodyIsRefusedWhileSomeSlabStaysFree) {
  constexpr launch_shape shapes[] = {{2, 2}, {4, 1}, {1, 4}};
  u64 which = 0;
  for_each_schedule(1200, [&] {
    halloc_pool<> const pool{7};
    halloc_churn const body{.rounds = 2,
                            .held_max = 1,
                            .sizes = {.least = 16, .doublings = 7, .large_bytes = 16384, .odd = true},
                            .seed = which};
    auto const report = churned(pool, shapes[which++ % 3], body);
    EXPECT_EQ(report.refused, 0u);
    EXPECT_EQ(report.broken, 0u);
    pool.expect_quiet(0);
  });
}

// At rest: halloc.A7, halloc.C4, halloc.P2
TEST(HallocChurn, SurvivesAChurnThatRunsOut) {
  u32 refused = 0;
  for (u32 const slabs : {1u, 3u, 9u})
    for (launch_shape const shape : {launch_shape{1, 1}, {1, 31}, {1, 33}, {2, 40}, {4, 17}})
      for_each_schedule(20, [&] {
        halloc_pool<> const pool{slabs};
        halloc_churn const body{.rounds = 8,
                                .held_max = 4,
                                .sizes = {.least = 256, .doublings = 3, .large_bytes = 9000, .odd = true},
                                .seed = slabs};
        auto const report = churned(pool, shape, body);
        EXPECT_GT(report.served, 0u);
        EXPECT_EQ(report.broken, 0u);
        refused += report.refused;
        pool.expect_quiet(0);
      });
  EXPECT_GT(refused, 0u);
}

// halloc.C1
TEST(HallocChurn, SurvivesAChurnOfSmallBlocks) {
  for (bool const two_kinds : {false, true})
    for (launch_shape const shape : {launch_shape{1, 32}, {3, 31}, {2, 64}})
      for_each_schedule(20, [&] {
        halloc_pool<> const pool{8};
        halloc_churn const body{
            .rounds = 8, .held_max = 3, .sizes = {.least = 16, .doublings = 3, .odd = two_kinds}, .seed = 3};
        auto const report = churned(pool, shape, body);
        EXPECT_GT(report.served, 0u);
        EXPECT_EQ(report.broken, 0u);
        // With two kinds, a block in each slab is enough to keep the other kind out.
        if (!two_kinds) {
          EXPECT_EQ(report.refused, 0u) << "384 blocks spoil no more than three slabs for blocks of eight";
        }
        pool.expect_quiet(0);
      });
}

/// Lanes by turns in two heaps, at one place in the program.
struct churn_in_two {
  halloc_churn body;

  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator first, Allocator second, halloc_report* report) const {
    body(mix(global_thread_index()) % 2 == 0 ? first : second, report);
  }
};

TEST(HallocChurn, KeepsTwoHeapsOfOneWarpApart) {
  for (launch_shape const shape : {launch_shape{1, 32}, {2, 33}})
    for_each_schedule(40, [&] {
      halloc_pool<> const first{3}, second{5};
      halloc_churn const body{.rounds = 8,
                              .held_max = 2,
                              .sizes = {.least = 16, .doublings = 7, .large_bytes = 5000, .odd = true},
                              .seed = 5};
      device_buffer<halloc_report> const report(1);
      launch(shape, churn_in_two{body}, first.allocator(), second.allocator(), report.data());
      synchronize();
      EXPECT_GT(report[0].served, 0u);
      EXPECT_EQ(report[0].broken, 0u);
      first.expect_quiet(0);
      second.expect_quiet(0);
    });
}

/// Threads contend for a full heap: all are refused, and soon by slabs' notes alone.
TEST(HallocChurn, RefusesContendingThreadsWithoutReadingTheWordsAgain) {
  for_each_schedule(30, [] {
    halloc_pool<> const pool{2};
    auto blocks = allocate(pool, {11, 1}, 3072);
    std::erase(blocks, nullptr);
    ASSERT_EQ(blocks.size(), 10u);
    creation::halloc_work before;
    for (u32 round = 0; round < 4; ++round) {
      // The first of the lanes may still be promised chunks of heads, and outdate notes when
      // they give them back.
      if (round == 1) before = pool.allocator().work();
      auto const more = allocate(pool, {4, 40}, 3072);
      EXPECT_EQ(std::count(more.begin(), more.end(), nullptr), 160);
    }
    auto const work = pool.allocator().work();
    EXPECT_LE(work.word_looks - before.word_looks, 2u) << "a word a slab, once";
    EXPECT_LE(work.looks - before.looks, 2 * (work.searches - before.searches));
    EXPECT_LE(work.searches - before.searches, 3 * 160u);
    release(pool, {blocks[4]});
    auto const more = allocate(pool, {2, 20}, 3072);
    EXPECT_EQ(std::count(more.begin(), more.end(), blocks[4]), 1);
    pool.expect_quiet(10);
  });
}

#if !defined(__CUDACC__)

/// Sixty-four warps at once at a full heap: they draw numbers, and most rely on a search that
/// another warp began later.
TEST(HallocChurn, ABurstOfRefusedCallsSharesSearches) {
  constexpr static creation::halloc_config counting{.slab_bytes = 16384, .counts_work = true};
  constexpr u64 bursts = 6, warps = 64, slabs = 256;
  creation::halloc_work all;
  for (u64 seed = 0; seed < bursts; ++seed) {
    auto run = schedule_of(2 * seed + seed % 2);
    run.policy = host::schedule_policy::random_walk;
    run.masks = host::mask_policy::maximal;
    run.sm_count = 16;
    run.blocks_per_sm = 2;
    host::scoped_execution const use{run};
    halloc_pool<creation::halloc<counting>> const pool{slabs};
    auto blocks = allocate(pool, {41, 32}, 3072);
    EXPECT_EQ(std::count(blocks.begin(), blocks.end(), nullptr), 41 * 32 - 5 * static_cast<i64>(slabs));
    auto const before = pool.allocator().work();
    auto const more = allocate(pool, {16, 128}, 3072);
    EXPECT_EQ(std::count(more.begin(), more.end(), nullptr), 2048);
    auto const work = pool.allocator().work();
    all.searches += work.searches - before.searches;
    all.looks += work.looks - before.looks;
  }
  EXPECT_LE(all.searches, bursts * warps * 3 / 4);
  EXPECT_LE(all.looks, bursts * warps * slabs / 2);
  EXPECT_GE(all.looks, bursts * slabs) << "somebody has to look";
}

#endif

}}  // namespace warpheap::test
