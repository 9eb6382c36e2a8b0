// SPDX-License-Identifier: Apache-2.0
// Blocks that are freed twice while others ask and free: every count, index and lock stays right,
// and all memory comes back.
#include "policy/creation/stray_frees_fixture.hpp"
#include "pool_fixture.hpp"

namespace slab_bitmap_double_free_test {

using namespace warpheap;
using namespace warpheap::test;

auto slabs(u32 count) {
  return [count] { return tiny_pool{count}; };
}

#if !defined(__CUDACC__)

// A group that gets only some of the bits it wants gives them back, but a second free takes one of
// them first. When all were counted as given back, `used` fell below zero.
// slab.D6
TEST(SlabBitmapDoubleFree, SeedsAtWhichAPartOfAClaimWasCountedTwice) {
  replay({311, 461, 562, 1031}, slabs(1), {{3, 4}, {1024, 1024}});
  replay({16, 93, 179}, slabs(1), {{2, 8}, {512, 512}});
  replay({40, 154, 371}, slabs(1), {{2, 32}, {256, 256}});
}

#endif

TEST(SlabBitmapDoubleFree, OfBlocksOfOneSize) {
  expect_whole_after<frees_twice>(200, slabs(1), {{3, 4}, {1024, 1024}});
  expect_whole_after<frees_twice>(150, slabs(1), {{2, 8}, {512, 512}});
  expect_whole_after<frees_twice>(60, slabs(1), {{2, 32}, {256, 256}});
}

TEST(SlabBitmapDoubleFree, OfOneBlockByWholeWarpsCountsOnce) {
  for (launch_shape const shape : {launch_shape{1, 32}, launch_shape{3, 1}, launch_shape{2, 33}}) {
    for_each_schedule(60, [&] {
      tiny_pool const pool{1};
      auto const blocks = allocate(pool, {1, 4}, 256);
      u32 const lanes = shape.blocks * shape.threads;
      release(pool, std::vector<void*>(lanes, blocks[1]), shape);
      pool.expect_quiet(3, lanes - 1);
    });
  }
}

TEST(SlabBitmapDoubleFree, OfAnyBlockBesidePartialClaims) {
  expect_whole_after<lanes_free_anything>(400, slabs(1), {{6, 4}, {512, 512}, 30, 512});
}
TEST(SlabBitmapDoubleFree, OfAnyBlockByWholeWarps) {
  expect_whole_after<lanes_free_anything>(150, slabs(1), {{4, 32}, {128, 128}, 12, 128});
}
TEST(SlabBitmapDoubleFree, OfAnyBlockWhileSlabsChangeClass) {
  expect_whole_after<lanes_free_anything>(400, slabs(2), {{4, 3}, {1024, 16384}, 16, 1024});
}
TEST(SlabBitmapDoubleFree, OfAnyBlockByPartsOfWarps) {
  expect_whole_after<lanes_free_anything>(150, slabs(2), {{3, 33}, {16, 2048}, 8});
}

}  // namespace slab_bitmap_double_free_test
