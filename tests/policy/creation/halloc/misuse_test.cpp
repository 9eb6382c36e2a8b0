// SPDX-License-Identifier: Apache-2.0
// Halloc under misuse: second frees of blocks while others ask and free, and pointers that reach
// the lane that frees them in ways that order nothing.
#include <algorithm>

#include "policy/creation/stray_frees_fixture.hpp"
#include "policy/creation/unordered_hand_over_fixture.hpp"
#include "pool_fixture.hpp"

namespace warpheap::test { namespace {

constexpr u32 slab_bytes = halloc_slab_bytes;

auto slabs(u32 count) {
  return [count] { return halloc_pool<>{count}; };
}

#if !defined(__CUDACC__)

// A free that met a block of several chunks just being taken, before its joined bits were set,
// cleared one chunk of it.
TEST(HallocMisuse, SeedsAtWhichADoubleFreeLeftJoinedBitsWithoutABlock) {
  replay({8, 10, 35, 54}, slabs(2), {{4, 2}, {1024, 1024}});
  replay({7, 19, 22, 28}, slabs(2), {{4, 2}, {256, 2048}});
  replay({55, 56, 67}, slabs(2), {{3, 8}, {16, 256}});
  replay({31, 71, 142, 186}, slabs(2), {{6, 1}, {16, 3072}});
}

// A free of a large block that was freed meanwhile ended the slab for which TBuddy had given its
// memory.
TEST(HallocMisuse, SeedsAtWhichADoubleFreeOfALargeBlockEndedASlab) {
  replay({54, 59, 92, 107, 232, 255, 287}, slabs(4), {{4, 2}, {512, 2 * slab_bytes}});
}

#endif

TEST(HallocMisuse, DoubleFreesUnderTrafficLeaveTheHeapWhole) {
  expect_whole_after<frees_twice>(400, slabs(2), {{4, 2}, {1024, 1024}});
  expect_whole_after<frees_twice>(300, slabs(2), {{4, 2}, {256, 2048}});
  expect_whole_after<frees_twice>(60, slabs(2), {{3, 8}, {16, 256}});
  expect_whole_after<frees_twice>(40, slabs(3), {{2, 33}, {24, 3072}});
  expect_whole_after<frees_twice>(200, slabs(2), {{6, 1}, {16, 3072}});
}

// Slabs and large blocks take each other's memory, so an old pointer to a large block leads into a
// slab.
TEST(HallocMisuse, DoubleFreesOfLargeBlocksLeaveTheHeapWhole) {
  expect_whole_after<frees_twice>(300, slabs(4), {{4, 2}, {512, 2 * slab_bytes}});
}

TEST(HallocMisuse, WarpsThatFreeTheSameBlocksTogetherLeaveTheHeapWhole) {
  expect_whole_after<warps_free_twice>(100, slabs(2), {{2, 8}, {16, 256}, 6});
  expect_whole_after<warps_free_twice>(40, slabs(3), {{1, 31}, {16, 3072}, 6});
  expect_whole_after<warps_free_twice>(40, slabs(3), {{1, 33}, {256, 2048}, 6});
  expect_whole_after<warps_free_twice>(30, slabs(4), {{2, 40}, {64, 2 * slab_bytes}, 6});
}

TEST(HallocMisuse, TheSecondFreesOfAWarpAreCountedOneByOne) { expect_counts_second_frees(50, slabs(2)); }

/// A pool that is full of blocks of 48 bytes, then of 384.
TEST(HallocMisuse, AnOldPointerFreesNothingOfAnotherKind) {
  halloc_pool<> const pool{2};
  auto const old = allocate(pool, {8, 32}, 48);
  release(pool, old, {8, 32});
  auto const fresh = allocate(pool, {4, 32}, 384);
  std::vector<void*> stale;
  for (void* const block : old)
    if (block && std::find(fresh.begin(), fresh.end(), block) == fresh.end()) stale.push_back(block);
  u64 const live = static_cast<u64>(std::count_if(fresh.begin(), fresh.end(), [](void* block) { return block; }));
  ASSERT_GT(live, 64u);
  release(pool, stale);
  pool.expect_quiet(live, stale.size());
}

TEST(HallocMisuse, FreesWhatCameByAWayThatOrdersNothing) {
  for (u64 const bytes : {u64{48}, u64{1024}, u64{5000}}) expect_frees_what_came(100, slabs(4), bytes);
}

}}  // namespace warpheap::test
