// SPDX-License-Identifier: Apache-2.0
// Exact figures of a heap at rest: sizes of its blocks, and the largest that a call could get.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "warpheap/heap/gauge.hpp"
#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/warpheap.hpp"

namespace snapshot_test {

using namespace warpheap;
using namespace warpheap::literals;

/// Kernel, one thread: allocates each size in turn.
struct take_each {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 const* bytes, u64 count, void** blocks) const {
    for (u64 i = 0; i < count; ++i) blocks[i] = heap.malloc(bytes[i]);
  }
};
/// Kernel, one thread: frees each block whose place is a multiple of `every`.
struct free_each {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, void* const* blocks, u64 count, u64 every) const {
    for (u64 i = 0; i < count; i += every) heap.free(blocks[i]);
  }
};

template <class Heap>
std::vector<void*> take(Heap const& heap, std::vector<u64> const& bytes) {
  device_buffer<u64> const sizes{bytes};
  device_buffer<void*> const blocks(bytes.size());
  launch({1, 1}, take_each{}, heap.ref(), static_cast<u64 const*>(sizes.data()), u64{bytes.size()}, blocks.data());
  synchronize();
  return blocks.to_host();
}
template <class Heap>
void give_back(Heap const& heap, std::vector<void*> const& blocks, u64 every = 1) {
  device_buffer<void*> const held{blocks};
  launch({1, 1}, free_each{}, heap.ref(), static_cast<void* const*>(held.data()), u64{blocks.size()}, every);
  synchronize();
}

/// That one call gets what the heap says is the largest, and none gets more.
template <class Heap>
void expect_largest(Heap const& heap) {
  constexpr u64 step = Heap::alignment_type::bytes;
  u64 const largest = heap.snapshot().largest_available;
  EXPECT_EQ(take(heap, {largest + 1}).front(), nullptr) << largest;
  EXPECT_EQ(heap.available_slots(largest + 1), 0u);
  for (u64 bytes = largest + step; bytes < largest + 40 * step; bytes += step)
    EXPECT_EQ(heap.available_slots(bytes), 0u) << bytes << " beside " << largest;
  if (largest == 0) return;
  auto const got = take(heap, {largest});
  EXPECT_NE(got.front(), nullptr) << largest;
  give_back(heap, got);
}

TEST(Snapshot, CountsEachSizeOnce) {
  warpheap::heap heap{4_MiB};
  EXPECT_TRUE(heap.snapshot().sizes.empty());
  take(heap, {16, 1, 100, 100, 100, 33, 20000, 20000, 100000});
  auto const seen = heap.snapshot();
  u64 const slab = heap.ref().creation().geometry().slab_bytes();
  std::vector<std::pair<u64, u64>> sizes;
  for (auto const& [bytes, blocks] : seen.sizes) sizes.emplace_back(bytes, blocks);
  EXPECT_THAT(sizes, testing::ElementsAre(testing::Pair(16, 2), testing::Pair(48, 1), testing::Pair(112, 3),
                                          testing::Pair((20000 + slab - 1) / slab * slab, 2),
                                          testing::Pair((100000 + slab - 1) / slab * slab, 1)));
  auto const counted = heap.statistics();
  EXPECT_EQ(seen.live_blocks, counted.live_blocks);
  EXPECT_EQ(seen.live_bytes, counted.live_bytes);
  EXPECT_EQ(seen.free_slabs, counted.free_slabs);
}

TEST(Snapshot, TellsTheLargestThatACallCouldGet) {
  warpheap::heap heap{1_MiB};
  u64 const slab = heap.ref().creation().geometry().slab_bytes(), slabs = 1_MiB / slab;
  EXPECT_EQ(heap.snapshot().largest_available, 1_MiB);
  expect_largest(heap);
  auto each = take(heap, std::vector<u64>(slabs, slab));
  std::sort(each.begin(), each.end());
  EXPECT_EQ(heap.snapshot().largest_available, 0u);
  expect_largest(heap);
  give_back(heap, {each[3], each[4], each[5], each[9], each[10]});
  EXPECT_EQ(heap.snapshot().largest_available, 3 * slab);
  expect_largest(heap);
  // In the free slabs: blocks of 64 bytes, of 320, and of 112.
  for (u64 const bytes : {u64{64}, u64{320}, u64{112}}) take(heap, {bytes});
  while (heap.available_slots(slab) != 0) take(heap, {slab});
  EXPECT_EQ(heap.snapshot().largest_available, 320u);
  expect_largest(heap);
  take(heap, std::vector<u64>(heap.available_slots(320), 320));
  EXPECT_EQ(heap.snapshot().largest_available, 112u);
  expect_largest(heap);
}

TEST(Snapshot, TellsTheLargestOfWhatIsPadded) {
  using padded = basic_heap<allocator<creation::slab_bitmap<>, distribution::none, oom::return_null,
                                      reserve_pool::device_memory, alignment::shrink<128>>>;
  padded const heap{1_MiB};
  u64 const slab = heap.ref().creation().geometry().slab_bytes();
  expect_largest(heap);
  take(heap, {100, 384, 641});
  while (heap.available_slots(slab) != 0) take(heap, {slab});
  EXPECT_EQ(heap.snapshot().largest_available, 768u);
  expect_largest(heap);
  take(heap, std::vector<u64>(heap.available_slots(768), 768));
  EXPECT_EQ(heap.snapshot().largest_available, 384u);
  expect_largest(heap);
}

TEST(Snapshot, KnowsAHeapAfterFrees) {
  warpheap::heap heap{2_MiB};
  std::vector<u64> sizes;
  for (u64 i = 0; i < 600; ++i) sizes.push_back(16 + i * 37 % 9000);
  auto const blocks = take(heap, sizes);
  for (u64 const every : {u64{3}, u64{2}, u64{1}}) {
    std::vector<void*> held;
    for (auto* const block : blocks)
      if (block) held.push_back(block);
    give_back(heap, held, every);
    auto const seen = heap.snapshot();
    gauge reader{heap};
    auto const read = reader.read();
    EXPECT_EQ(seen.live_blocks, read.live_blocks);
    EXPECT_EQ(seen.live_bytes, read.live_bytes);
    ASSERT_EQ(seen.sizes.size(), read.classes.size()) << "no block here is larger than a slab";
    for (size_t i = 0; i < read.classes.size(); ++i) {
      EXPECT_EQ(seen.sizes[i].bytes, read.classes[i].bytes);
      EXPECT_EQ(seen.sizes[i].blocks, read.classes[i].blocks);
    }
    expect_largest(heap);
  }
  EXPECT_EQ(heap.snapshot().largest_available, 2_MiB);
}

}  // namespace snapshot_test
