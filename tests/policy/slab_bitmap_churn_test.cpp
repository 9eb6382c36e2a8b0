// slab_bitmap under contention on a pool of a few slabs: nothing overlaps, nothing is lost, every invariant holds at rest.
#include <gtest/gtest.h>

#include "support/schedules.hpp"
#include "tiny_pool.hpp"

namespace warpheap::test {
namespace {

struct churn_case {
  u32 slabs, blocks, threads, rounds, min_bytes, max_bytes;
};

void expect_clean(tiny_pool const& pool, u32 slabs) {
  for (auto const& line : pool.allocator().check_invariants()) ADD_FAILURE() << line;
  auto const counts = pool.allocator().statistics();
  EXPECT_EQ(counts.live_blocks, 0u);
  EXPECT_EQ(counts.double_frees + counts.foreign_frees, 0u);
  EXPECT_EQ(pool.allocator().available_slots_on_host(tiny_pool::slab_bytes), slabs);
}

void expect_churn_is_clean(churn_case shape, unsigned seeds) {
  u64 seed = 0;
  for_each_schedule(seeds, [&] {
    tiny_pool const pool{shape.slabs};
    device_buffer<churn_report> report(1);
    churn const body{shape.rounds, shape.min_bytes, shape.max_bytes, 1000 * ++seed};
    launch({shape.blocks, shape.threads}, body, pool.allocator(), report.data());
    synchronize();
    EXPECT_EQ(report[0].broken, 0u);
    EXPECT_GT(report[0].served, 0u);
    expect_clean(pool, shape.slabs);
  });
}

TEST(SlabBitmapChurn, SmallBlocksOfOneClassInOneSlab) { expect_churn_is_clean({1, 2, 33, 6, 16, 16}, 200); }
TEST(SlabBitmapChurn, MixedSmallBlocksInAFewSlabs) { expect_churn_is_clean({4, 2, 40, 6, 16, 512}, 200); }
TEST(SlabBitmapChurn, LargeBlocksFightForTwoSlabs) { expect_churn_is_clean({2, 2, 31, 6, 2048, 16384}, 300); }
TEST(SlabBitmapChurn, OneBlockASlabChangesClassAllTheTime) { expect_churn_is_clean({3, 3, 8, 8, 8000, 16384}, 300); }
TEST(SlabBitmapChurn, RunsAgainstBlocks) { expect_churn_is_clean({6, 2, 16, 6, 4096, 50000}, 300); }
TEST(SlabBitmapChurn, CrowdsOutgrowTheirHints) { expect_churn_is_clean({8, 24, 128, 3, 80, 128}, 40); }
TEST(SlabBitmapChurn, OneLane) { expect_churn_is_clean({2, 1, 1, 40, 16, 30000}, 50); }
TEST(SlabBitmapChurn, ManyWarpsOnEightSlabs) { expect_churn_is_clean({8, 6, 64, 4, 16, 4096}, 60); }

// Warps that arrive at a hinted slab which blind promises have filled beyond its capacity.
TEST(SlabBitmapChurn, WarpsThatOverrunAHintedSlabAreNotPromisedWhatIsNotThere) {
  for_each_schedule(150, [&] {
    tiny_pool const pool{12};
    device_buffer<void*> blocks(1024);
    for (int round = 0; round < 2; ++round) {
      launch({1, 1024}, allocate_each{}, pool.allocator(), blocks.data(), u64{112});
      synchronize();
      EXPECT_EQ(pool.allocator().statistics().live_blocks, 1024u);
      for (auto const& line : pool.allocator().check_invariants()) ADD_FAILURE() << line;
      launch({1, 1024}, free_each{}, pool.allocator(), blocks.data());
      synchronize();
      expect_clean(pool, 12);
    }
  });
}

}  // namespace
}  // namespace warpheap::test
