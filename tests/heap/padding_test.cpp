// SPDX-License-Identifier: Apache-2.0
// Sizes padded to cache lines. With every creation policy that aligns multiples of 128 bytes to
// 128, all blocks are aligned so, by whatever function they were allocated, and also when a heap is
// nearly full and blocks come and go, or when a second heap serves.
#include <gtest/gtest.h>

#include "support/schedules.hpp"
#include "warpheap/all.hpp"
#include "warpheap/platform/device_buffer.hpp"

namespace padding_test {

using namespace warpheap;
using namespace warpheap::literals;

constexpr u32 line = 128;

template <class Creation, class Oom = oom::return_null>
using padded = allocator<Creation, distribution::none, Oom, reserve_pool::device_memory, alignment::shrink<line>>;

constexpr u32 threads = 64, rounds = 24;

/// Every lane asks for blocks of many sizes, by each function that hands one out, keeps some and
/// frees others, and writes the first and last byte of what it holds.
struct allocate_aligned {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 largest, u32* served, u32* faults) const {
    u32 const me = static_cast<u32>(global_thread_index());
    u8* kept[4] = {};
    u64 sizes[4] = {};
    for (u32 round = 0; round < rounds; ++round) {
      u32 const random = mix32(rounds * me + round);
      u64 const bytes = 1 + random % (largest >> random % 7);
      u8* const block = static_cast<u8*>(ask(heap, random >> 16, bytes));
      u32 const slot = round % 4;
      if (kept[slot] && kept[slot][sizes[slot] - 1] != static_cast<u8>(me)) faults[me] += 1000;
      heap.free(kept[slot]);
      kept[slot] = block;
      sizes[slot] = bytes;
      if (!block) continue;
      ++served[me];
      if (reinterpret_cast<u64>(block) % Heap::traits.alignment != 0) ++faults[me];
      block[bytes - 1] = block[0] = static_cast<u8>(me);
    }
    for (u8* const block : kept) heap.free(block);
  }

 private:
  template <class Heap>
  WARPHEAP_DEVICE static void* ask(Heap const& heap, u32 how, u64 bytes) {
    switch (how % 4) {
      case 0: return heap.calloc(1, bytes);
      case 1: return heap.realloc(nullptr, bytes);
      case 2: return heap.aligned_alloc(32, bytes);
      default: return heap.malloc(bytes);
    }
  }
};

template <class Allocator>
void expect_aligned(u64 largest) {
  test::for_each_schedule(6, [=] {
    basic_heap<Allocator> const heap{1_MiB};
    device_buffer<u32> const served(threads), faults(threads);
    launch({2, threads / 2}, allocate_aligned{}, heap.ref(), largest, served.data(), faults.data());
    synchronize();
    EXPECT_EQ(faults.to_host(), std::vector<u32>(threads));
    u32 blocks = 0;
    for (u32 const count : served.to_host()) blocks += count;
    EXPECT_GT(blocks, threads * rounds / 4);
    EXPECT_EQ(heap.statistics().live_blocks, 0u);
    for (auto const& violated : heap.check_invariants()) ADD_FAILURE() << violated;
  });
}

template <class Allocator>
void expect_lines(u64 largest) {
  static_assert(Allocator::traits.alignment >= line);
  expect_aligned<Allocator>(largest);
}

constexpr creation::scatter_config exact_chunks{.waste_factor = 1};
constexpr creation::ualloc_config wide_bins{.wide_bins = true};
constexpr creation::rw_malloc_config lines{.unit_bytes = line};
constexpr creation::random_walk_config odd_pages{.page_bytes = 9 * line};
constexpr creation::ring_buffer_config odd_frames{.frame_bytes = 5 * line};
constexpr creation::halloc_config small_slabs{
    .slab_bytes = 16384, .sparse_up_to = 500, .probes = 2, .slabs_per_row = 8};

TEST(PaddingToLines, HoldsForSlabBitmap) { expect_lines<padded<creation::slab_bitmap<>>>(20000); }
TEST(PaddingToLines, HoldsForScatter) { expect_lines<padded<creation::scatter<exact_chunks>>>(10000); }
TEST(PaddingToLines, HoldsForScatterWithWaste) { expect_lines<padded<creation::scatter<>>>(10000); }
TEST(PaddingToLines, HoldsForHalloc) { expect_lines<padded<creation::halloc<>>>(10000); }
TEST(PaddingToLines, HoldsForHallocOfSmallSlabs) { expect_lines<padded<creation::halloc<small_slabs>>>(10000); }
TEST(PaddingToLines, HoldsForTbuddy) { expect_lines<padded<creation::tbuddy<>>>(20000); }
TEST(PaddingToLines, HoldsForUalloc) { expect_lines<padded<creation::ualloc<>>>(1024); }
TEST(PaddingToLines, HoldsForUallocWithWideBins) { expect_lines<padded<creation::ualloc<wide_bins>>>(2048); }
TEST(PaddingToLines, HoldsForThroughput) { expect_lines<padded<creation::throughput<>>>(10000); }
TEST(PaddingToLines, HoldsForThroughputWithWideBins) { expect_lines<padded<creation::throughput<wide_bins>>>(10000); }
TEST(PaddingToLines, HoldsForRandomWalk) { expect_lines<padded<creation::random_walk<odd_pages>>>(9 * line); }
TEST(PaddingToLines, HoldsForRingBuffer) { expect_lines<padded<creation::ring_buffer<odd_frames>>>(5 * line); }
TEST(PaddingToLines, HoldsForRwMalloc) { expect_lines<padded<creation::rw_malloc<lines>>>(10000); }
TEST(PaddingToLines, HoldsWhereASecondHeapServes) {
  expect_lines<padded<creation::slab_bitmap<>, oom::overflow_to<padded<creation::halloc<>>>>>(10000);
}

// halloc pads to 8 what it is asked for. What the first heap pads to 16 is aligned to 16 there.
TEST(PaddingTo16, HoldsWhereASecondHeapPadsToLess) {
  using composed = allocator<creation::slab_bitmap<>, distribution::none, oom::overflow_to<halloc_allocator>,
                             reserve_pool::device_memory, alignment::shrink<16>>;
  static_assert(composed::traits.alignment == 16 && halloc_allocator::traits.alignment == 8);
  expect_aligned<composed>(10000);
}

}  // namespace padding_test
