// Lanes that come and go in a pool of a few slabs: what they wrote is there, nobody is refused what is nobody's, and all of it is
// free in the end.
#include "halloc_pool.hpp"

#include <algorithm>

namespace warpheap::test {
namespace {

/// Sizes of chunks of 384 bytes, of which a slab holds five blocks of eight.
constexpr halloc_sizes lengths_of_384{.least = 384, .doublings = 3};
constexpr u32 whole_blocks = 5;

// Whoever asks holds nothing, and each of the others holds one block at most, which leaves a block of eight chunks for the
// asker wherever the others' are: in five of a slab one of them spoils one.
TEST(HallocChurn, NobodyIsRefusedWhileABlockIsNobodys) {
  constexpr launch_shape shapes[] = {{2, 5}, {10, 1}, {1, 10}, {5, 2}};
  u64 which = 0, served = 0;
  for_each_schedule(600, [&] {
    halloc_pool<> const pool{2};
    auto const report =
        churned(pool, shapes[which++ % 4], {.rounds = 12, .held_max = 1, .sizes = lengths_of_384, .seed = which});
    EXPECT_EQ(report.refused, 0u);
    EXPECT_EQ(report.broken, 0u);
    served += report.served;
    pool.expect_quiet(0);
  });
  EXPECT_GT(served, 0u);
  static_assert(2 * whole_blocks == 10);
}

// As many lanes as slabs, each with one block of any kind, or one as large as a slab: the others hold one slab less than there
// are.
TEST(HallocChurn, NobodyIsRefusedWhileASlabIsNobodys) {
  constexpr launch_shape shapes[] = {{2, 2}, {4, 1}, {1, 4}};
  u64 which = 0;
  for_each_schedule(600, [&] {
    halloc_pool<> const pool{4};
    halloc_churn const body{.rounds = 10,
                            .held_max = 1,
                            .sizes = {.least = 16, .doublings = 7, .large_bytes = 16384, .odd = true},
                            .seed = which};
    auto const report = churned(pool, shapes[which++ % 3], body);
    EXPECT_EQ(report.refused, 0u);
    EXPECT_EQ(report.broken, 0u);
    pool.expect_quiet(0);
  });
}

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
        // Of two kinds, a block in each slab is enough to keep the other one out.
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

/// A crowd at a full heap: all are refused, and after the first of them nobody searches.
TEST(HallocChurn, RefusesACrowdByFewSearches) {
  for_each_schedule(30, [] {
    halloc_pool<> const pool{2};
    auto blocks = allocate(pool, {11, 1}, 3072);
    std::erase(blocks, nullptr);
    ASSERT_EQ(blocks.size(), 10u);
    u64 before = 0;
    for (u32 round = 0; round < 4; ++round) {
      auto const more = allocate(pool, {4, 40}, 3072);
      EXPECT_EQ(std::count(more.begin(), more.end(), nullptr), 160);
      // Who looked for a head ahead of time may have made room known after the heap was filled: that is looked at once more.
      if (round == 0) before = pool.allocator().work().searches;
    }
    EXPECT_EQ(pool.allocator().work().searches, before) << "the certificate says it";
    release(pool, {blocks[4]});
    auto const more = allocate(pool, {2, 20}, 3072);
    EXPECT_EQ(std::count(more.begin(), more.end(), blocks[4]), 1);
    pool.expect_quiet(10);
  });
}

}  // namespace
}  // namespace warpheap::test
