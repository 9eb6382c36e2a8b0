// SPDX-License-Identifier: Apache-2.0
// forgiving_allocator: memory that no block held reads as zeros, and no two blocks share a sector
// of 32 bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/util/random.hpp"
#include "warpheap/warpheap.hpp"

namespace forgiving_test {

using namespace warpheap;
using namespace warpheap::literals;

constexpr u64 sector = 32;
using forgiving_heap = basic_heap<forgiving_allocator>;

static_assert(sizeof(forgiving_allocator) == sizeof(default_allocator));

/// What the threads of a kernel found, added up.
struct tally {
  u64 blocks = 0;     ///< that were served
  u64 bytes = 0;      ///< asked for in them
  u64 nonzero = 0;    ///< bytes of them that were not zero
  u64 misplaced = 0;  ///< blocks that share a sector with a neighbour
};

/// Kernel: every thread asks for blocks of random sizes until it has `most` or gets nullptr, looks
/// at each, writes it full, and keeps it.
struct look_and_write {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 seed, u32 most, u64 largest, tally* found) const {
    random_sequence random{seed + global_thread_index()};
    for (u32 i = 0; i < most; ++i) {
      u64 const bytes = 1 + random.below(static_cast<u32>(largest));
      auto* const block = static_cast<u8*>(heap.malloc(bytes));
      if (!block) return;
      u64 nonzero = 0;
      for (u64 at = 0; at < bytes; ++at) {
        nonzero += block[at] != 0;
        block[at] = 0xff;
      }
      u64 const address = reinterpret_cast<u64>(block);
      add(found->blocks, 1);
      add(found->bytes, bytes);
      add(found->nonzero, nonzero);
      add(found->misplaced, address % sector != 0 || heap.usable_size(block) % sector != 0);
    }
  }

 private:
  WARPHEAP_DEVICE static void add(u64& counter, u64 value) {
    atomic_ref<u64>{counter}.fetch_add(value, order::relaxed);
  }
};

template <class Allocator>
tally look(basic_heap<Allocator> const& heap, u64 seed, u64 largest) {
  device_buffer<tally> const found(1);
  launch({3, 45}, look_and_write{}, heap.ref(), seed, 1u << 20, largest, found.data());
  synchronize();
  return found[0];
}

/// Takes the memory that a later heap is made of, and more, and writes all of it.
void dirty(u64 pool_bytes) {
#if !defined(__CUDACC__)
  // So that the C library keeps what is freed, and gives it to the next caller.
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
  heap const earlier{2 * pool_bytes};
  look(earlier, 1, 4096);
}

TEST(ForgivingHeap, HandsOutZerosWhereNoBlockWas) {
  constexpr u64 pool = 4_MiB;
  dirty(pool);
// CUDA and the sanitizers may change freed memory.
#if !defined(__CUDACC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_GT(look(heap{pool}, 2, 4096).nonzero, 0u) << "the memory is as others left it";
#endif
  for (u64 const largest : {40, 700, 40'000}) {
    dirty(pool);
    auto const found = look(forgiving_heap{pool}, largest, static_cast<u64>(largest));
    EXPECT_GT(found.bytes, pool / 3) << largest;
    EXPECT_EQ(found.nonzero, 0u) << largest;
  }
}

TEST(ForgivingHeap, GivesEveryBlockSectorsOfItsOwn) {
  for (u64 const largest : {16, 40, 700, 5000, 300'000}) {
    forgiving_heap const heap{4_MiB};
    auto const found = look(heap, largest, static_cast<u64>(largest));
    EXPECT_GT(found.blocks, 10u);
    EXPECT_EQ(found.misplaced, 0u) << largest;
  }
  EXPECT_GT(look(heap{4_MiB}, 1, 16).misplaced, 0u) << "the default does not";
}

/// Kernel: one lane writes to a block, frees it, and keeps what it finds when it gets it again.
struct write_free_and_look_again {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64* kept) const {
    auto* const first = static_cast<u64*>(heap.malloc(64));
    first[3] = 7;
    heap.free(first);
    for (u32 i = 0; i < 1u << 16; ++i) {
      auto* const again = static_cast<u64*>(heap.malloc(64));
      if (!again) return;
      if (again == first) *kept = again[3];
    }
  }
};

// The promise ends where that of CUDA's heap does.
TEST(ForgivingHeap, LeavesInFreedMemoryWhatWasWrittenThere) {
  forgiving_heap const heap{1_MiB};
  device_buffer<u64> const kept(1);
  launch({1, 1}, write_free_and_look_again{}, heap.ref(), kept.data());
  synchronize();
  EXPECT_EQ(kept[0], 7u);
}

// What alignment::shrink may pad to for slab_bitmap, and no more than that.
TEST(ForgivingHeap, RestsOnClassesThatAreMultiplesAsTheirSizesAre) {
  constexpr u64 most = creation::slab_bitmap<>::traits.multiples_aligned_up_to;
  static_assert(most == 4096);
  for (u64 alignment = 16; alignment <= most; alignment *= 2)
    for (u64 bytes = alignment; bytes <= max_class_bytes; bytes += alignment)
      ASSERT_EQ(class_bytes(size_class_of(bytes)) % alignment, 0u) << bytes;
}

TEST(ForgivingHeap, SaysWhatItIs) {
  EXPECT_THAT(forgiving_heap{1_MiB}.info(), testing::AllOf(testing::HasSubstr("reserve_pool zeroed_memory"),
                                                           testing::HasSubstr("alignment shrink<32>")));
}

}  // namespace forgiving_test
