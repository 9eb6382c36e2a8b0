// nullptr means that at one instant every block was owned (D9), not that each slab was full at some time. As many lanes as a
// tiny pool has blocks, each of which holds one at most: whoever asks holds none, so some block is nobody's all the time, and
// nobody may be refused.
#include "tiny_pool.hpp"

namespace slab_bitmap_instant_test {

using namespace warpheap;

/// Every lane takes a block and gives it back, again and again, after waits of its own.
struct take_and_give_back {
  WARPHEAP_DEVICE void operator()(test::slab_allocator heap, u32 rounds, u64 seed, u32* refused) const {
    random_sequence random{seed * 64 + global_thread_index()};
    for (u32 round = 0; round < rounds; ++round) {
      for (u32 wait = random.below(6); wait != 0; --wait) simt::pause(1);
      void* const block = heap.create(test::tiny_pool::slab_bytes / 2);
      if (!block) atomic_ref<u32>{*refused}.fetch_add(1, order::relaxed);
      for (u32 wait = random.below(6); wait != 0; --wait) simt::pause(1);
      heap.destroy(block);
    }
  }
};

TEST(SlabBitmapInstant, NobodyIsRefusedWhileABlockIsNobodys) {
  constexpr launch_shape shapes[] = {{4, 1}, {2, 2}, {1, 4}};
  u64 which = 0;
  test::for_each_schedule(3000, [&] {
    test::tiny_pool const pool{2};
    device_buffer<u32> const refused(1);
    ++which;
    launch(shapes[which % 3], take_and_give_back{}, pool.allocator(), 12u, which, refused.data());
    synchronize();
    EXPECT_EQ(refused[0], 0u);
  });
}

/// One thread frees a block of a full slab; another looks whether the epoch was raised when it sees that H is gone.
struct free_beside_a_witness {
  WARPHEAP_DEVICE void operator()(test::slab_allocator heap, void* block, u64 before, u32* seen, u32* unsaid) const {
    if (global_thread_index() == 0) return heap.destroy(block);
    for (u32 look = 0; look < 2000; ++look) {
      if (!heap.table().load(0).hard()) {
        *seen += 1;
        *unsaid += heap.table().epoch_sum_newest() == before;
        return;
      }
      simt::pause(1);
    }
  }
};

struct take_until_refused {
  WARPHEAP_DEVICE void operator()(test::slab_allocator heap, void** last, u64* epoch) const {
    while (void* const block = heap.create(test::tiny_pool::slab_bytes / 2)) *last = block;
    *epoch = heap.table().epoch_sum_newest();
  }
};

/// Two threads of `witness` at a slab that is full, under many schedules: what they wait for happens, and never wrongly.
template <class Witness>
void expect_at_a_full_slab(unsigned seeds, Witness witness) {
  u32 witnessed = 0;
  test::for_each_schedule(seeds, [&] {
    test::tiny_pool const pool{1};
    device_buffer<void*> const last(1);
    device_buffer<u64> const epoch(1);
    device_buffer<u32> const counts(2);
    launch({1, 1}, take_until_refused{}, pool.allocator(), last.data(), epoch.data());
    synchronize();
    launch({2, 1}, witness, pool.allocator(), last[0], epoch[0], counts.data(), counts.data() + 1);
    synchronize();
    witnessed += counts[0];
    EXPECT_EQ(counts[1], 0u);
  });
  EXPECT_GE(witnessed, 1u);
}

TEST(SlabBitmapInstant, TheEpochIsRaisedBeforeAFullSlabIsUnmarked) {
  expect_at_a_full_slab(300, free_beside_a_witness{});
}

/// One thread frees a block of a full slab that is marked so; another takes it again, keeps it, and looks whether the mark goes.
struct take_again_and_watch {
  WARPHEAP_DEVICE void operator()(test::slab_allocator heap, void* block, u64, u32* full, u32* unmarked) const {
    if (global_thread_index() == 0) return heap.destroy(block);
    for (u32 attempt = 0; attempt < 2000 && !heap.create(test::tiny_pool::slab_bytes / 2); ++attempt) simt::pause(1);
    // Nobody frees any more.
    if (!heap.table().load(0).hard()) return;
    *full += 1;
    for (u32 look = 0; look < 100; ++look) {
      simt::pause(1);
      if (heap.table().load(0).hard()) continue;
      *unmarked += 1;
      return;
    }
  }
};

// Searchers pass a marked slab by, and count on being told when it gets room: whoever unmarked it when it is full again would
// let the next block be freed without a word.
TEST(SlabBitmapInstant, AFullSlabKeepsItsMark) { expect_at_a_full_slab(4000, take_again_and_watch{}); }

}  // namespace slab_bitmap_instant_test
