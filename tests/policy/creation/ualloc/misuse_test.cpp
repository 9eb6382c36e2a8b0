// SPDX-License-Identifier: Apache-2.0
// UAlloc, TBuddy and throughput, which is both, under misuse: second frees of blocks while others
// ask and free, and pointers that reach the lane that frees them in ways that order nothing.
#include "policy/creation/stray_frees_fixture.hpp"
#include "policy/creation/tbuddy/pool_fixture.hpp"
#include "policy/creation/unordered_hand_over_fixture.hpp"
#include "pool_fixture.hpp"

namespace warpheap::test { namespace {

using creation::throughput;
using creation::ualloc;

template <class Allocator>
auto chunks(u32 count) {
  return [count] { return bin_pool<Allocator>{count * small_chunk}; };
}
auto pages(u32 count) {
  return [count] { return tbuddy_pool{count}; };
}

#if !defined(__CUDACC__)

// A free found its block in a bin that changed its class before the free counted it. The result was
// units without blocks, and lanes that waited for a clear bit for ever.
// bins.N6
TEST(UallocMisuse, SeedsAtWhichADoubleFreeCountedForAnotherBin) {
  replay({2, 5, 11, 14, 23}, chunks<ualloc<tight>>(2), {{3, 8}, {16, 512}});
  replay({65, 85, 111, 143}, chunks<ualloc<tight>>(2), {{3, 2}, {16, 512}});
  replay({2, 5, 23, 39}, chunks<ualloc<tight_and_wide>>(4), {{3, 5}, {128, 2048}});
  replay({20, 32}, chunks<throughput<tight>>(3), {{3, 8}, {16, 8192}});
}

#endif

TEST(UallocMisuse, DoubleFreesUnderTrafficLeaveTheHeapWhole) {
  expect_whole_after<frees_twice>(60, chunks<ualloc<tight>>(2), {{3, 8}, {16, 512}});
  expect_whole_after<frees_twice>(150, chunks<ualloc<tight>>(2), {{3, 2}, {16, 512}});
  expect_whole_after<frees_twice>(100, chunks<ualloc<tight>>(1), {{6, 1}, {256, 1024}});
  expect_whole_after<frees_twice>(20, chunks<ualloc<keeping>>(2), {{1, 33}, {64, 1024}});
  expect_whole_after<frees_twice>(40, chunks<ualloc<tight_and_wide>>(4), {{3, 5}, {128, 2048}});
}

TEST(UallocMisuse, DoubleFreesBetweenBinsAndPagesLeaveTheHeapWhole) {
  expect_whole_after<frees_twice>(200, chunks<throughput<tight>>(2), {{4, 2}, {256, 8192}});
  expect_whole_after<frees_twice>(40, chunks<throughput<tight>>(3), {{3, 8}, {16, 8192}});
  expect_whole_after<frees_twice>(20, chunks<throughput<tight_and_wide>>(8), {{3, 5}, {128, 8192}});
}

TEST(UallocMisuse, DoubleFreesOfPagesLeaveTheHeapWhole) {
  expect_whole_after<frees_twice>(300, pages(16), {{4, 2}, {64, 256}});
  expect_whole_after<frees_twice>(60, pages(37), {{2, 33}, {64, 1024}});
}

TEST(UallocMisuse, WarpsThatFreeTheSameBlocksTogetherLeaveTheHeapWhole) {
  expect_whole_after<warps_free_twice>(30, chunks<ualloc<tight>>(2), {{2, 8}, {16, 512}, 6});
  expect_whole_after<warps_free_twice>(20, chunks<ualloc<tight>>(2), {{1, 31}, {64, 1024}, 6});
  expect_whole_after<warps_free_twice>(20, chunks<throughput<tight>>(2), {{1, 33}, {256, 4096}, 6});
  expect_whole_after<warps_free_twice>(60, pages(32), {{2, 40}, {64, 256}, 6});
}

TEST(UallocMisuse, TheSecondFreesOfAWarpAreCountedOneByOne) {
  expect_counts_second_frees(50, chunks<ualloc<tight>>(2));
}

TEST(UallocMisuse, FreesWhatCameByAWayThatOrdersNothing) {
  for (u64 const bytes : {u64{48}, u64{1024}}) {
    expect_frees_what_came(100, chunks<ualloc<tight>>(2), bytes);
    expect_frees_what_came(50, chunks<ualloc<tight_and_wide>>(4), bytes);
  }
  for (u64 const bytes : {u64{1024}, u64{2048}, u64{4096}})
    expect_frees_what_came(50, chunks<throughput<tight>>(2), bytes);
  for (u64 const bytes : {u64{64}, u64{200}}) expect_frees_what_came(100, pages(16), bytes);
}

}}  // namespace warpheap::test
