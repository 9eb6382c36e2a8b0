// SPDX-License-Identifier: Apache-2.0
// Heaps of every kind used as they may be: what they tell AddressSanitizer of their pools must not
// accuse correct programs.
#include <warpheap/all.hpp>
#include <warpheap/platform/assert.hpp>
#include <warpheap/platform/device_buffer.hpp>

#include <cstdlib>
#include <cstring>

using namespace warpheap;

/// Every lane writes all that it may of blocks that it allocates, moves and frees.
struct use_blocks {
  template <class Ref>
  void operator()(Ref heap, u64 rounds) const {
    for (u64 round = 0; round < rounds; ++round) {
      u64 const drawn = global_thread_index() * 37 + round * 101;
      size_t const bytes = 1 + drawn % (drawn % 8 == 7 ? 60000 : 400);
      void* block = heap.malloc(bytes);
      if (!block) continue;
      std::memset(block, 1, bytes);
      if (void* const moved = heap.realloc(block, bytes, bytes + 9)) {
        std::memset(moved, 2, bytes + 9);
        block = moved;
      }
      if constexpr (requires { heap.usable_size(block); }) std::memset(block, 3, heap.usable_size(block));
      heap.free(block);
      heap.free(heap.calloc(3, bytes));
    }
  }
};

/// The host reads a block, and resets the heap, between kernels.
struct keep_block {
  template <class Ref>
  void operator()(Ref heap, void** kept) const {
    *kept = heap.malloc(20);
    std::memset(*kept, 4, 20);
  }
};

template <class Heap>
void use(Heap& heap) {
  device_buffer<void*> const kept(1);
  launch({1, 1}, keep_block{}, heap.ref(), kept.data());
  char copy[20];
  backend::copy_bytes(copy, kept[0], sizeof copy);
  launch({4, 64}, use_blocks{}, heap.ref(), u64{4});
  stream on;
  launch(on, {2, 40}, use_blocks{}, heap.ref(), u64{4});
  heap.reset(on);
  launch(on, {2, 40}, use_blocks{}, heap.ref(), u64{4});
  synchronize();
}

template <class Heap>
void make_and_use() {
  Heap heap{size_t{4} << 20};
  use(heap);
  Heap second{size_t{4} << 20};
  heap = std::move(second);
  use(heap);
}

using small_second = plain_allocator<creation::rw_malloc<>>;
using overflowing = basic_heap<allocator<creation::slab_bitmap<>, distribution::none, oom::overflow_to<small_second>,
                                         reserve_pool::device_memory, alignment::shrink<16>>>;
using coalescing = basic_heap<allocator<creation::slab_bitmap<>, distribution::warp_coalesce, oom::return_null,
                                        reserve_pool::device_memory, alignment::shrink<16>>>;
using placed = basic_heap<allocator<creation::slab_bitmap<>, distribution::none, oom::return_null,
                                    reserve_pool::external, alignment::shrink<16>>>;

int main() {
  make_and_use<heap>();
  make_and_use<scatter_heap>();
  make_and_use<halloc_heap>();
  make_and_use<ring_buffer_heap>();
  make_and_use<queue_pages_heap>();
  make_and_use<rw_bitmap_heap>();
  make_and_use<rw_malloc_heap>();
  make_and_use<tbuddy_heap>();
  make_and_use<throughput_heap>();
  make_and_use<overflowing>();
  make_and_use<coalescing>();
  // guard.A3: the memory is the caller's again when the heap is gone
  size_t const bytes = size_t{2} << 20;
  void* const memory = std::malloc(bytes);
  {
    placed heap{memory, bytes};
    use(heap);
  }
  std::memset(memory, 5, bytes);
  std::free(memory);
}
