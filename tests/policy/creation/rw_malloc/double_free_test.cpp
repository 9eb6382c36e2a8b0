// SPDX-License-Identifier: Apache-2.0
// Blocks that are freed twice while others ask and free: marks, extents and notes stay right, no
// call waits for ever, and every unit comes back.
#include "policy/creation/stray_frees_fixture.hpp"
#include "pool_fixture.hpp"

namespace warpheap::test { namespace {

using creation::rw_malloc;

template <class Heap>
auto units(u64 count) {
  return [count] { return unit_pool<Heap>{count}; };
}
auto tiny(u64 count) { return units<rw_malloc<tiny_units>>(count); }

#if !defined(__CUDACC__)

// The start mark was set before the end mark: a second free in between took the end of another
// block for this one's, and units were lost.
TEST(RwMallocDoubleFree, SeedsAtWhichAStartMarkCameBeforeItsEndMark) {
  replay({311, 425, 465, 483}, units<rw_malloc<>>(512), {{3, 8}, {16, 512}});
  replay({51, 175}, tiny(64), {{3, 8}, {16, 512}});
  replay({6, 13, 15, 29}, tiny(512), {{3, 8}, {16, 2000}});
}

#endif

TEST(RwMallocDoubleFree, OfBlocksOfTwoWords) {
  expect_whole_after<frees_twice>(200, units<rw_malloc<>>(512), {{3, 8}, {16, 512}});
}
TEST(RwMallocDoubleFree, OfBlocksInAFullPool) { expect_whole_after<frees_twice>(200, tiny(64), {{3, 8}, {16, 512}}); }
TEST(RwMallocDoubleFree, OfBlocksOfManyWords) { expect_whole_after<frees_twice>(60, tiny(512), {{3, 8}, {16, 2000}}); }

// Both marks are set by one operation.
TEST(RwMallocDoubleFree, OfBlocksOfOneUnit) { expect_whole_after<frees_twice>(100, tiny(64), {{3, 8}, {16, 16}}); }

TEST(RwMallocDoubleFree, OfAnyUnitByWholeWarps) {
  expect_whole_after<warps_free_anything>(100, tiny(64), {{4, 32}, {16, 256}});
}
TEST(RwMallocDoubleFree, OfAnyUnitWhileLongBlocksComeAndGo) {
  expect_whole_after<warps_free_anything>(150, tiny(256), {{6, 3}, {600, 3000}, 20});
}

#if !defined(__CUDACC__)

// rw.U1 turned around: the start mark is there before the end mark.
struct marks_the_start_first : rw_malloc_parts::no_faults {
  WARPHEAP_DEVICE static u64 mark_ends(atomic_ref<u64> first, u64 start_bit, atomic_ref<u64> last, u64 end_bit) {
    u64 const before = first.fetch_or(start_bit, order::release);
    last.fetch_or(end_bit, order::relaxed);
    return before;
  }
};

// The start mark is set without release.
struct marks_without_order : rw_malloc_parts::no_faults {
  WARPHEAP_DEVICE static u64 mark_ends(atomic_ref<u64> first, u64 start_bit, atomic_ref<u64> last, u64 end_bit) {
    last.fetch_or(end_bit, order::relaxed);
    return first.fetch_or(start_bit, order::relaxed);
  }
};

// The start mark is read without acquire.
struct receives_no_ends : rw_malloc_parts::no_faults {
  WARPHEAP_DEVICE static void receive_ends(atomic_ref<u64>) {}
};

template <class Faults>
std::optional<u64> caught_freeing_twice() {
  return find_failing_schedule(
      400,
      [] {
        auto const heaps = units<rw_malloc<tiny_units, Faults>>;
        return fault_after<frees_twice>(heaps(512), {{3, 8}, {16, 2000}}).empty() &&
               fault_after<warps_free_anything>(heaps(256), {{6, 3}, {600, 3000}, 20}).empty();
      },
      4'000'000);
}

TEST(RwMallocDoubleFreeMutant, ThatMarksTheStartFirstIsCaught) {
  EXPECT_TRUE(caught_freeing_twice<marks_the_start_first>());
}
// rw.U2
TEST(RwMallocDoubleFreeMutant, ThatMarksWithoutOrderIsCaught) {
  EXPECT_TRUE(caught_freeing_twice<marks_without_order>());
}
TEST(RwMallocDoubleFreeMutant, ThatReceivesNoEndsIsCaught) { EXPECT_TRUE(caught_freeing_twice<receives_no_ends>()); }

#endif

}}  // namespace warpheap::test
