// SPDX-License-Identifier: Apache-2.0
// A lane that learned of a block in a way that orders nothing, by a shuffle or a relaxed word, may
// read older words of the heap than the lane that asked for it. It frees the block all the same,
// and the heap recognises the block.
#include "random_walk/pool_fixture.hpp"
#include "rw_malloc/pool_fixture.hpp"
#include "scatter/pool_fixture.hpp"

namespace warpheap::test { namespace {

/// How often lanes were served, and how often owns() denied a block.
struct passing_report {
  u32 served = 0;
  u32 refused = 0;
};

/// The pointer of the next active lane above; the highest lane gets that of the lowest.
WARPHEAP_DEVICE void* shuffle_up(void* pointer) {
  u32 const active = simt::active_mask(), above = active & ~low_mask32(simt::lane_id() + 1);
  return simt::shuffle(active, pointer, lowest_bit(above != 0 ? above : active));
}

/// Every lane asks, passes on what it got, asks what it was given, and frees it. The boxes, one for
/// each lane, are empty in the end, as each lane then frees what is in its own.
struct pass_on {
  u32 rounds;
  sizes_between sizes;
  u64 seed;
  bool by_shuffle;

  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64* boxes, passing_report* report) const {
    u32 const lanes = simt::block_dim() * simt::grid_dim();
    random_sequence random{seed * 1000 + global_thread_index()};
    for (u32 round = 0; round < rounds; ++round) {
      void* block = heap.create(sizes.draw(random));
      if (block) atomic_ref<u32>{report->served}.fetch_add(1, order::relaxed);
      if (by_shuffle) block = shuffle_up(block);
      // relaxed: the case under test is that nothing orders it.
      else
        block = reinterpret_cast<void*>(
            atomic_ref<u64>{boxes[random.below(lanes)]}.exchange(reinterpret_cast<u64>(block), order::relaxed));
      // At times only: a lane that asked has seen newer words, so free() would not need to look.
      if (block && random.below(2) == 0 && !heap.owns(block))
        atomic_ref<u32>{report->refused}.fetch_add(1, order::relaxed);
      heap.destroy(block);
    }
  }
};

/// Frees what is left in the boxes.
struct empty_boxes {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 const* boxes) const {
    heap.destroy(reinterpret_cast<void*>(boxes[global_thread_index()]));
  }
};

struct passing {
  u64 pool_bytes;
  launch_shape shape;
  u32 rounds;
  sizes_between sizes;
};

template <class Heap>
void expect_nothing_lost(unsigned seeds, passing const& what) {
  for_each_schedule(seeds, [&] {
    for (bool const by_shuffle : {true, false}) {
      quiet_pool<Heap> const pool{what.pool_bytes};
      device_buffer<u64> const boxes(u64{what.shape.blocks} * what.shape.threads);
      device_buffer<passing_report> const report(1);
      launch(what.shape, pass_on{what.rounds, what.sizes, schedule_seed(), by_shuffle}, pool.allocator(), boxes.data(),
             report.data());
      launch(what.shape, empty_boxes{}, pool.allocator(), static_cast<u64 const*>(boxes.data()));
      synchronize();
      EXPECT_GT(report[0].served, 0u);
      EXPECT_EQ(report[0].refused, 0u);
      pool.expect_quiet(0);
    }
  });
}

// An older word of the page said that it was free, or of another size: the block was lost, or
// another chunk freed. Each of these failed first at seed 1, and so did owns() of the others below.
TEST(UnorderedHandOver, OfLargeChunksOfScatter) {
  expect_nothing_lost<creation::scatter<>>(40, {3 * 4096, {2, 8}, 8, {200, 4096}});
}
TEST(UnorderedHandOver, OfSmallChunksOfScatter) {
  expect_nothing_lost<creation::scatter<>>(100, {3 * 4096, {1, 16}, 12, {16, 48}});
  expect_nothing_lost<creation::scatter<>>(400, {2 * 4096, {1, 8}, 12, {16, 48}});
}
TEST(UnorderedHandOver, OfChunksOfBothKindsOfScatter) {
  expect_nothing_lost<creation::scatter<>>(40, {4096, {2, 8}, 8, {16, 600}});
}
TEST(UnorderedHandOver, OfRunsOfScatter) {
  expect_nothing_lost<creation::scatter<>>(40, {8 * 4096, {2, 4}, 8, {600, 16384}});
}

TEST(UnorderedHandOver, OfBlocksOfRwMalloc) {
  expect_nothing_lost<creation::rw_malloc<tiny_units>>(40, {512 * 16, {2, 8}, 8, {16, 512}});
}
TEST(UnorderedHandOver, OfLongBlocksOfRwMalloc) {
  expect_nothing_lost<creation::rw_malloc<tiny_units>>(40, {512 * 16, {2, 4}, 8, {600, 4000}});
}

TEST(UnorderedHandOver, OfPagesOfWalks) {
  expect_nothing_lost<creation::random_walk<tiny_plain>>(40, {12 * 64, {2, 8}, 8, {64, 64}});
  expect_nothing_lost<creation::random_walk<tiny_bitmap>>(40, {12 * 64, {2, 8}, 8, {64, 64}});
  expect_nothing_lost<creation::random_walk<tiny_shared>>(40, {12 * 64, {2, 8}, 8, {64, 64}});
}

constexpr creation::ring_buffer_config small_frames{.frame_bytes = 64};
TEST(UnorderedHandOver, OfFrames) {
  expect_nothing_lost<creation::ring_buffer<small_frames>>(40, {12 * 64, {2, 8}, 8, {64, 64}});
}

}}  // namespace warpheap::test
