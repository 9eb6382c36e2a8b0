// SPDX-License-Identifier: Apache-2.0
// slab_bitmap under contention on a pool of a few slabs: nothing overlaps, nothing is lost, every
// invariant holds at rest.
#include "pool_fixture.hpp"

namespace warpheap::test { namespace {

struct churn_case {
  u32 slabs, blocks, threads, rounds, min_bytes, max_bytes;
};

void expect_churn_is_clean(churn_case shape, unsigned seeds) {
  expect_clean_churn(
      seeds, [&] { return tiny_pool{shape.slabs}; }, {shape.blocks, shape.threads}, shape.rounds,
      sizes_between{shape.min_bytes, shape.max_bytes}, [](tiny_pool const& pool) { pool.expect_empty(); });
}

// At rest: slab.D1, slab.D2, slab.D7
TEST(SlabBitmapChurn, SmallBlocksOfOneClassInOneSlab) { expect_churn_is_clean({1, 2, 33, 6, 16, 16}, 200); }
TEST(SlabBitmapChurn, MixedSmallBlocksInAFewSlabs) { expect_churn_is_clean({4, 2, 40, 6, 16, 512}, 200); }
TEST(SlabBitmapChurn, LargeBlocksFightForTwoSlabs) { expect_churn_is_clean({2, 2, 31, 6, 2048, 16384}, 300); }
TEST(SlabBitmapChurn, OneBlockASlabChangesClassAllTheTime) { expect_churn_is_clean({3, 3, 8, 8, 8000, 16384}, 300); }
TEST(SlabBitmapChurn, RunsAgainstBlocks) { expect_churn_is_clean({6, 2, 16, 6, 4096, 50000}, 300); }
TEST(SlabBitmapChurn, CrowdsOutgrowTheirHints) { expect_churn_is_clean({8, 24, 128, 3, 80, 128}, 40); }
TEST(SlabBitmapChurn, OneLane) { expect_churn_is_clean({2, 1, 1, 40, 16, 30000}, 50); }
TEST(SlabBitmapChurn, ManyWarpsOnEightSlabs) { expect_churn_is_clean({8, 6, 64, 4, 16, 4096}, 60); }

// Warps that arrive at an active slab which blind reservations have filled beyond its capacity.
TEST(SlabBitmapChurn, WarpsThatOverrunAnActiveSlabReserveNothingThatIsNotThere) {
  for_each_schedule(150, [&] {
    tiny_pool const pool{12};
    for (int round = 0; round < 2; ++round) {
      auto const blocks = allocate(pool, {1, 1024}, 112);
      pool.expect_quiet(1024);
      release(pool, blocks);
      pool.expect_empty();
    }
  });
}

}}  // namespace warpheap::test
