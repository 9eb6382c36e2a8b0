// SPDX-License-Identifier: Apache-2.0
// How many blocks of a size a heap has room for. One lane that looks at all, the lanes of a warp,
// some of them, lanes of several sizes, and the host's grid all count the same, and as many blocks
// can be allocated.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "support/schedules.hpp"
#include "warpheap/all.hpp"
#include "warpheap/platform/device_buffer.hpp"

namespace slot_survey_test {

using namespace warpheap;
using namespace warpheap::literals;

constexpr u32 places = 12;

u64 rows_by_one_loop(u32 free, u64 length) {
  u64 rows = 0, row = 0;
  for (u32 place = 0; place < places; ++place) {
    row = free >> place & 1 ? row + 1 : 0;
    if (row != length) continue;
    ++rows;
    row = 0;
  }
  return rows;
}

// Rows across every border of parts: each pattern of 12 places, in every number of parts, gives the
// count of a single loop.
TEST(SlotSurvey, FindsRowsAcrossPartsAsWithinThem) {
  for (u32 free = 0; free < 1u << places; ++free)
    for (u64 length = 1; length <= 5; ++length) {
      u64 const expected = rows_by_one_loop(free, length);
      for (u64 parts = 1; parts <= places + 2; ++parts) {
        slots_of_length const of_row{length};
        slot_sum sum;
        u64 seen = 0;
        for (u64 part = 0; part < parts; ++part) {
          slot_share const share{part, parts};
          free_runs runs{share.first(places), of_row};
          for (u64 place = share.first(places); place < share.end(places); ++place, ++seen)
            runs.add(free >> place & 1, ~free >> place & 1);
          sum.add(runs.part(), of_row);
        }
        ASSERT_EQ(seen, places);
        ASSERT_EQ(sum.total(of_row), expected) << free << ", runs of " << length << ", parts " << parts;
      }
    }
}

constexpr u32 threads = 96, blocks_a_thread = 12;

/// Blocks of many sizes, of which two thirds are freed again.
struct fill_in_part {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 largest, u32 seed) const {
    u32 const me = static_cast<u32>(global_thread_index());
    void* kept[blocks_a_thread];
    for (u32 i = 0; i < blocks_a_thread; ++i) {
      u32 const random = mix32(seed + blocks_a_thread * me + i);
      kept[i] = heap.malloc(1 + random % (largest >> random % 9));
    }
    for (u32 i = 0; i < blocks_a_thread; ++i)
      if (mix32(seed + i + me) % 3 != 0) heap.free(kept[i]);
  }
};

struct count_alone {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 bytes, u64* slots) const {
    *slots = heap.available_slots(bytes);
  }
};

/// One warp: the lanes of `mask`, of which those with an odd number ask for `other`.
struct count_by_warp {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, lane_mask mask, u64 bytes, u64 other, u64* slots) const {
    u32 const lane = simt::lane_id();
    if ((mask >> lane & 1) != 0) slots[lane] = heap.available_slots_warp(mask, lane % 2 ? other : bytes);
  }
};

struct allocate_all {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 bytes, u64* blocks) const {
    while (heap.malloc(bytes)) ++*blocks;
  }
};

template <class Allocator>
u64 slots_alone(basic_heap<Allocator> const& heap, u64 bytes) {
  device_buffer<u64> const slots(1);
  launch({1, 1}, count_alone{}, heap.ref(), bytes, slots.data());
  synchronize();
  return slots[0];
}

template <class Allocator>
void expect_one_answer(basic_heap<Allocator> const& heap, u64 bytes, u64 other) {
  u64 const slots = slots_alone(heap, bytes), others = slots_alone(heap, other);
  EXPECT_EQ(heap.available_slots(bytes), slots) << bytes << " bytes, by the host";
  for (lane_mask const mask : {full_mask, lane_bit(warp_lanes - 1) | 0x421, lane_bit(7)}) {
    device_buffer<u64> const found(warp_lanes);
    launch({1, warp_lanes}, count_by_warp{}, heap.ref(), mask, bytes, other, found.data());
    synchronize();
    auto const counts = found.to_host();
    for (u32 lane = 0; lane < warp_lanes; ++lane) {
      u64 const its = lane % 2 ? others : slots;
      EXPECT_EQ(counts[lane], mask >> lane & 1 ? its : 0)
          << "lane " << lane << " of " << mask << ", " << bytes << " and " << other << " bytes";
    }
  }
}

/// `largest`: of the blocks that are allocated first, and about the largest that is asked for.
template <class Allocator>
void expect_same_slots(u64 largest, unsigned seeds = 3) {
  test::for_each_schedule(seeds, [=] {
    basic_heap<Allocator> heap{2_MiB};
    u64 const all = slots_alone(heap, largest);
    EXPECT_GT(all, 0u);
    expect_one_answer(heap, largest, 0);
    launch({3, threads / 3}, fill_in_part{}, heap.ref(), largest, static_cast<u32>(test::schedule_seed()));
    synchronize();
    std::vector<u64> sizes{1, 24, 100, 1000, 4096, 5000, 40000, 300000, heap.pool_bytes(), ~u64{0}, 0};
    for (u64 const bytes : sizes) expect_one_answer(heap, std::min(bytes, largest), bytes);
    EXPECT_LT(slots_alone(heap, largest), all) << "what is in use is not counted";
    // And as many can be allocated.
    device_buffer<u64> const blocks(1);
    u64 const promised = heap.available_slots(largest);
    launch({1, 1}, allocate_all{}, heap.ref(), largest, blocks.data());
    synchronize();
    EXPECT_EQ(blocks[0], promised);
    EXPECT_EQ(heap.available_slots(largest), 0u);
    expect_one_answer(heap, largest, 1);
    for (auto const& violated : heap.check_invariants()) ADD_FAILURE() << violated;
  });
}

constexpr creation::slab_bitmap_config small_slabs{.max_slab_log2 = 14};
constexpr creation::halloc_config split{.slab_bytes = 16384, .split_percent = 50};
constexpr creation::ualloc_config wide_bins{.wide_bins = true};
constexpr creation::rw_malloc_config large_units{.unit_bytes = 256};
using coalesced = allocator<creation::slab_bitmap<>, distribution::warp_coalesce, oom::return_null,
                            reserve_pool::device_memory, alignment::shrink<16>>;
using overflowing = allocator<creation::slab_bitmap<>, distribution::none, oom::overflow_to<halloc_allocator>,
                              reserve_pool::device_memory, alignment::shrink<16>>;

TEST(SlotSurvey, OfSlabBitmap) { expect_same_slots<default_allocator>(9000); }
TEST(SlotSurvey, OfSlabBitmapInRuns) { expect_same_slots<plain_allocator<creation::slab_bitmap<small_slabs>>>(40000); }
TEST(SlotSurvey, OfScatter) { expect_same_slots<scatter_allocator>(3000); }
TEST(SlotSurvey, OfScatterInRuns) { expect_same_slots<scatter_allocator>(20000); }
TEST(SlotSurvey, OfHalloc) { expect_same_slots<halloc_allocator>(3000); }
TEST(SlotSurvey, OfHallocsLargeBlocks) { expect_same_slots<halloc_allocator>(16384); }
TEST(SlotSurvey, OfHallocWithASplit) { expect_same_slots<finely_aligned_allocator<creation::halloc<split>>>(2000); }
TEST(SlotSurvey, OfTbuddy) { expect_same_slots<tbuddy_allocator>(8192); }
TEST(SlotSurvey, OfUalloc) { expect_same_slots<ualloc_allocator>(1024); }
TEST(SlotSurvey, OfUallocWithWideBins) { expect_same_slots<plain_allocator<creation::ualloc<wide_bins>>>(1024); }
TEST(SlotSurvey, OfThroughput) { expect_same_slots<throughput_allocator>(1024); }
TEST(SlotSurvey, OfThroughputsLargeBlocks) { expect_same_slots<throughput_allocator>(16384); }
TEST(SlotSurvey, OfRandomWalk) { expect_same_slots<rw_bitmap_allocator>(8192); }
TEST(SlotSurvey, OfCollaborativeWalk) { expect_same_slots<corw_allocator>(8192); }
TEST(SlotSurvey, OfRwMalloc) { expect_same_slots<rw_malloc_allocator>(9000); }
TEST(SlotSurvey, OfRwMallocWithLargeUnits) {
  expect_same_slots<plain_allocator<creation::rw_malloc<large_units>>>(9000);
}
TEST(SlotSurvey, OfQueuesOfPages) { expect_same_slots<queue_pages_allocator>(8192); }
TEST(SlotSurvey, OfVirtualQueuesOfChunks) { expect_same_slots<queue_chunks_virtual_allocator>(8192); }
TEST(SlotSurvey, OfRingBuffer) { expect_same_slots<ring_buffer_allocator>(8192); }
TEST(SlotSurvey, OfSlabsBehindCombinedRequests) { expect_same_slots<coalesced>(9000); }
TEST(SlotSurvey, OfTwoHeaps) { expect_same_slots<overflowing>(9000); }

/// Slots are counted through a program's own policy only if it can be counted in parts.
struct counts_alone : creation::toolkit {
  WARPHEAP_DEVICE u64 available_slots(size_t) const { return 7; }
};
template <class Allocator>
constexpr bool counts_by_warp = requires(Allocator heap) {
  heap.available_slots_warp(1, 16);
};
static_assert(counts_by_warp<default_allocator> && counts_by_warp<coalesced> && counts_by_warp<overflowing>);
static_assert(!counts_by_warp<toolkit_allocator>);
static_assert(!counts_by_warp<allocator<counts_alone, distribution::none, oom::return_null, reserve_pool::toolkit_limit,
                                        alignment::shrink<16>>>);

}  // namespace slot_survey_test
