// SPDX-License-Identifier: Apache-2.0
// realloc of a block to a size that it has room for: it is never refused, also by a heap without
// another block, and within the smallest size it does not move.
#include <gtest/gtest.h>

#include "support/schedules.hpp"
#include "warpheap/all.hpp"
#include "warpheap/platform/device_buffer.hpp"

namespace realloc_test {

using namespace warpheap;
using namespace warpheap::literals;

template <class Creation, class Distribution = distribution::none, class Oom = oom::return_null>
using over = allocator<Creation, Distribution, Oom, reserve_pool::device_memory, alignment::shrink<16>>;

/// What became of a block that was to hold other sizes.
struct outcome {
  u32 refused, moved, lost;
};

/// One lane asks for a block at a multiple of `alignment` (0: by malloc), for as many others as
/// there are, if it `fills` the heap, and gives that one smaller and smaller sizes.
struct shrink_a_block {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 bytes, u64 alignment, bool fills, outcome* seen) const {
    u8* block = static_cast<u8*>(first(heap, bytes, alignment));
    void* last = nullptr;  // the list of all others
    for (void** next = nullptr; fills && (next = static_cast<void**>(heap.malloc(bytes))) != nullptr; last = next)
      *next = last;
    block[0] = 77;
    for (u64 wanted = bytes; wanted != 0; wanted = wanted > 64 ? wanted / 2 : wanted - 1) {
      u8* const now =
          static_cast<u8*>(wanted % 2 ? heap.realloc(block, bytes, wanted) : ask(heap, block, bytes, wanted));
      if (now == nullptr) ++seen->refused;
      if (now == nullptr) continue;
      if (now != block) ++seen->moved;
      if (now[0] != 77) ++seen->lost;
      block = now;
    }
    heap.free(block);
    while (last) {
      void* const next = *static_cast<void**>(last);
      heap.free(last);
      last = next;
    }
  }

 private:
  template <class Heap>
  WARPHEAP_DEVICE static void* first(Heap const& heap, u64 bytes, u64 alignment) {
    if constexpr (requires { heap.aligned_alloc(alignment, bytes); })
      if (alignment != 0) return heap.aligned_alloc(alignment, bytes);
    return heap.malloc(bytes);
  }
  template <class Heap>
  WARPHEAP_DEVICE static void* ask(Heap const& heap, void* block, u64 old_bytes, u64 bytes) {
    if constexpr (requires { heap.realloc(block, bytes); }) return heap.realloc(block, bytes);
    else return heap.realloc(block, old_bytes, bytes);
  }
};

template <class Allocator>
outcome shrunk(u64 bytes, u64 alignment = 0, bool fills = true) {
  SCOPED_TRACE(testing::Message() << bytes << " bytes at " << alignment);
  basic_heap<Allocator> const heap{1_MiB};
  device_buffer<outcome> const seen(1);
  launch({1, 1}, shrink_a_block{}, heap.ref(), bytes, alignment, fills, seen.data());
  synchronize();
  outcome const found = seen[0];
  EXPECT_EQ(found.refused, 0u);
  EXPECT_EQ(found.lost, 0u);
  for (auto const& violated : heap.check_invariants()) ADD_FAILURE() << violated;
  return found;
}

/// Blocks of some sizes, up to `largest`, and aligned ones, if the heap has such.
template <class Allocator>
void expect_shrinks(u64 smallest, u64 largest) {
  EXPECT_EQ(shrunk<Allocator>(smallest, 0, false).moved, 0u) << "within the smallest size";
  for (u64 const bytes : {smallest, u64{100}, u64{256}, u64{1024}, u64{3000}, u64{40000}})
    if (bytes <= largest) shrunk<Allocator>(bytes);
  for (u64 const alignment : {64u, 1024u}) shrunk<Allocator>(16, alignment);
}

constexpr creation::scatter_config exact_chunks{.waste_factor = 1};

TEST(ReallocOfWhatHasRoom, IsServedBySlabBitmap) { expect_shrinks<over<creation::slab_bitmap<>>>(16, 40000); }
TEST(ReallocOfWhatHasRoom, IsServedByScatter) { expect_shrinks<over<creation::scatter<exact_chunks>>>(16, 40000); }
TEST(ReallocOfWhatHasRoom, IsServedByHalloc) { expect_shrinks<over<creation::halloc<>>>(16, 3000); }
TEST(ReallocOfWhatHasRoom, IsServedByTbuddy) { expect_shrinks<over<creation::tbuddy<>>>(4096, 40000); }
TEST(ReallocOfWhatHasRoom, IsServedByUalloc) { expect_shrinks<over<creation::ualloc<>>>(16, 1024); }
TEST(ReallocOfWhatHasRoom, IsServedByThroughput) { expect_shrinks<over<creation::throughput<>>>(16, 40000); }
TEST(ReallocOfWhatHasRoom, IsServedByRwMalloc) { expect_shrinks<over<creation::rw_malloc<>>>(16, 40000); }
// All blocks are of one size.
TEST(ReallocOfWhatHasRoom, IsServedByRandomWalk) { shrunk<over<creation::random_walk<>>>(1000); }
TEST(ReallocOfWhatHasRoom, IsServedByRingBuffer) { shrunk<over<creation::ring_buffer<>>>(1000); }
TEST(ReallocOfWhatHasRoom, IsServedInParts) {
  expect_shrinks<over<creation::slab_bitmap<>, distribution::warp_coalesce>>(16, 40000);
}
TEST(ReallocOfWhatHasRoom, IsServedByASecondHeap) {
  using second = over<creation::halloc<>>;
  expect_shrinks<over<creation::slab_bitmap<>, distribution::none, oom::overflow_to<second>>>(16, 3000);
}

}  // namespace realloc_test
