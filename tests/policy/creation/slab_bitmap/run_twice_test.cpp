// SPDX-License-Identifier: Apache-2.0
// Runs of slabs that are freed twice: by several lanes at once, half way through the first free,
// and as the slabs are handed out again. A run that has a new owner by then is lost to that owner,
// which no check can tell; the slabs stay sound.
#include <warpheap/util/random.hpp>

#include "pool_fixture.hpp"

namespace slab_bitmap_run_twice_test {

using namespace warpheap;
using test::tiny_pool;

constexpr u64 two_slabs = 2 * tiny_pool::slab_bytes;

/// The first lane frees any block at the start of the first slab, again and again. The second asks
/// for a run of both slabs and frees it, and the others do so with small blocks. The second goes on
/// until it was served, which it is once the others have ended.
struct free_as_it_is_handed_out {
  WARPHEAP_DEVICE void operator()(test::slab_allocator heap, u32 rounds, u32* served) const {
    u32 const me = static_cast<u32>(global_thread_index());
    for (u32 round = 0; round < rounds || (me == 1 && *served == 0 && round < 1000 * rounds); ++round) {
      if (me == 0) {
        heap.destroy(heap.table().pool());
        continue;
      }
      void* const block = heap.create(me == 1 ? two_slabs : 16);
      if (block && me == 1) *served += 1;
      if (!block) simt::pause(1);
      heap.destroy(block);
    }
  }
};

// The slabs of a run were given back before they had become a run, and small blocks were served
// from them.
TEST(SlabBitmapRunTwice, AsItIsHandedOutAgain) {
  test::for_each_schedule(600, [&] {
    tiny_pool const pool{2};
    device_buffer<u32> const runs(1);
    launch({4, 1}, free_as_it_is_handed_out{}, pool.allocator(), 40u, runs.data());
    synchronize();
    EXPECT_GE(runs[0], 1u);
    for (auto const& line : pool.allocator().snapshot().check_invariants()) ADD_FAILURE() << line;
  });
}

// slab.R1
TEST(SlabBitmapRunTwice, ByManyLanesAtOnce) {
  for (launch_shape const shape : {launch_shape{1, 2}, launch_shape{5, 1}, launch_shape{2, 33}}) {
    test::for_each_schedule(100, [&] {
      tiny_pool const pool{4};
      void* const run = test::allocate(pool, {1, 1}, 2 * two_slabs)[0];
      ASSERT_NE(run, nullptr);
      u32 const lanes = shape.blocks * shape.threads;
      test::release(pool, std::vector<void*>(lanes, run), shape);
      pool.expect_quiet(0, lanes - 1);
      EXPECT_NE(test::allocate(pool, {1, 1}, 2 * two_slabs)[0], nullptr);
    });
  }
}

/// Every lane asks for a run or a small block, frees it, and frees one of its last ones again.
struct free_again {
  WARPHEAP_DEVICE void operator()(test::slab_allocator heap, u32 rounds, u64 seed) const {
    random_sequence random{seed * 1000 + global_thread_index()};
    void* freed[4] = {};
    for (u32 round = 0; round < rounds; ++round) {
      u64 const bytes = random.below(3) == 0 ? 16 << random.below(10) : tiny_pool::slab_bytes * (1 + random.below(4));
      void* const block = heap.create(bytes);
      test::pause_for(random.below(4));
      heap.destroy(block);
      freed[round % 4] = block;
      heap.destroy(freed[random.below(4)]);
    }
  }
};

/// Whatever is freed twice, the slabs stay sound, and nothing is live in the end, since every lane
/// that held a block has freed it: all of the pool is there in one piece. In `most_windows`
/// schedules a block may be left all the same. It was lost in the known window of slab.F3.
void expect_stays_sound(unsigned seeds, u32 slabs, launch_shape shape, u32 rounds, u32 most_windows = 0) {
  u32 windows = 0;
  test::for_each_schedule(seeds, [&] {
    tiny_pool const pool{slabs};
    launch(shape, free_again{}, pool.allocator(), rounds, test::schedule_seed());
    synchronize();
    for (auto const& line : pool.allocator().snapshot().check_invariants()) ADD_FAILURE() << line;
    u64 const left = pool.allocator().snapshot().statistics().live_blocks;
    if (left == 1 && windows < most_windows) {
      ++windows;
      return;
    }
    EXPECT_EQ(left, 0u);
    EXPECT_NE(test::allocate(pool, {1, 1}, slabs * tiny_pool::slab_bytes)[0], nullptr);
  });
}

TEST(SlabBitmapRunTwice, HalfWayThroughTheFirstFree) { expect_stays_sound(600, 4, {4, 1}, 12); }
TEST(SlabBitmapRunTwice, ByPartsOfWarps) { expect_stays_sound(200, 5, {2, 7}, 10, 2); }
TEST(SlabBitmapRunTwice, ByAWarpAndAPartOfOne) { expect_stays_sound(100, 6, {2, 33}, 6, 8); }

}  // namespace slab_bitmap_run_twice_test
