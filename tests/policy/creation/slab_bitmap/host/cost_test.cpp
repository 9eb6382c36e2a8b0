// SPDX-License-Identifier: Apache-2.0
// What calls cost, in steps of the host backend: atomics, collectives and pauses. A guide that
// leads nowhere harms no answer, and these counts alone show it. Lanes take one step in turn, so
// each count is always the same; each limit is a twentieth above it. A change that makes calls
// dearer has to say why.
#include <string>
#include <vector>

#include "../pool_fixture.hpp"

namespace slab_bitmap_cost_test {

using namespace warpheap;
using test::slab_allocator;
using test::tiny_pool;

/// Some calls on a pool, and the steps that they take at most, summed over `seeds`.
struct calls {
  /// What holds all of the pool before: nothing, blocks of a slab each, or blocks of the size.
  enum pool_is : u32 { fresh, full_of_slabs, full_of_the_size } pool;
  u32 slabs;
  launch_shape shape;
  u32 rounds;
  u64 bytes;  ///< 0: a block of every class in turn
  bool frees;
  u64 most_steps;
};

constexpr u32 seeds = 4;

/// Kernel: every thread asks `rounds` times, and keeps what it got, or frees it at once.
struct ask_often {
  u32 rounds;
  u64 bytes;
  bool frees;

  WARPHEAP_DEVICE void operator()(slab_allocator heap, u32 seed, u32* served) const {
    // Random numbers are drawn from the clock.
    test::pause_for(seed);
    u32 got = 0;
    for (u32 round = 0; round < rounds; ++round) {
      void* const block = heap.create(bytes != 0 ? bytes : class_bytes(round));
      got += block != nullptr;
      if (frees) heap.destroy(block);
    }
    atomic_ref<u32>{*served}.fetch_add(got, order::relaxed);
  }
};

/// The steps that the calls take; `served` becomes how many of them were.
u64 steps_of(calls const& are, u64& served) {
  u64 steps = 0;
  served = 0;
  for (u32 seed = 0; seed < seeds; ++seed) {
    host::scoped_execution const use{{.mode = host::execution_mode::deterministic,
                                      .policy = host::schedule_policy::round_robin,
                                      .masks = host::mask_policy::maximal,
                                      .sm_count = 4,
                                      .blocks_per_sm = 16}};
    tiny_pool const pool{are.slabs};
    u32 const blocks_a_slab = static_cast<u32>(tiny_pool::slab_bytes / std::max<u64>(are.bytes, 1));
    if (are.pool == calls::full_of_slabs) test::allocate(pool, {are.slabs / 32, 32}, tiny_pool::slab_bytes);
    if (are.pool == calls::full_of_the_size) test::allocate(pool, {are.slabs * blocks_a_slab / 32, 32}, are.bytes);
    device_buffer<u32> const got(1);
    launch(are.shape, ask_often{are.rounds, are.bytes, are.frees}, pool.allocator(), seed, got.data());
    synchronize();
    steps += host::last_run().steps;
    served += got[0];
  }
  return steps;
}

void expect_cost(std::vector<calls> const& table) {
  for (calls const& are : table) {
    u64 served = 0;
    u64 const steps = steps_of(are, served);
    SCOPED_TRACE(testing::Message() << are.shape.blocks << " x " << are.shape.threads << " lanes, " << are.bytes
                                    << " bytes, freed at once: " << are.frees << "; " << steps << " steps");
    u64 const asked = u64{seeds} * are.shape.blocks * are.shape.threads * are.rounds;
    EXPECT_EQ(served, are.pool == calls::fresh ? asked : 0);
    EXPECT_LE(steps, are.most_steps);
  }
}

TEST(SlabBitmapCost, OfBlocksForOneLane) {
  expect_cost({{calls::fresh, 256, {1, 1}, 36, 0, false, 5924},
               {calls::fresh, 256, {1, 1}, 200, 64, false, 10305},
               {calls::fresh, 256, {1, 1}, 200, 512, false, 18317},
               {calls::fresh, 256, {1, 1}, 200, 2048, false, 23620},
               {calls::fresh, 256, {1, 1}, 200, 8192, false, 26311},
               {calls::fresh, 256, {1, 1}, 200, 16384, false, 30250},
               {calls::fresh, 256, {1, 1}, 50, 64, true, 6027},
               {calls::fresh, 256, {1, 1}, 50, 512, true, 6054},
               {calls::fresh, 256, {1, 1}, 50, 16384, true, 8637},
               {calls::fresh, 256, {1, 1}, 50, 40000, true, 6941}});
}

TEST(SlabBitmapCost, OfBlocksForAWarp) {
  expect_cost({{calls::fresh, 1024, {1, 32}, 20, 64, false, 38974},
               {calls::fresh, 1024, {1, 32}, 20, 512, false, 39060},
               {calls::fresh, 1024, {1, 32}, 20, 2048, false, 66024},
               {calls::fresh, 1024, {1, 32}, 20, 16384, false, 97533},
               {calls::fresh, 256, {1, 32}, 6, 64, true, 18621},
               {calls::fresh, 256, {1, 32}, 6, 2048, true, 27115},
               {calls::fresh, 256, {1, 32}, 6, 16384, true, 33824}});
}

TEST(SlabBitmapCost, OfBlocksForACrowd) {
  expect_cost({{calls::fresh, 2048, {16, 64}, 1, 64, false, 72895},
               {calls::fresh, 2048, {16, 64}, 1, 512, false, 72714},
               {calls::fresh, 2048, {16, 64}, 1, 2048, false, 115865},
               {calls::fresh, 2048, {16, 64}, 1, 16384, false, 170016},
               {calls::fresh, 256, {32, 1}, 8, 512, false, 27092},
               {calls::fresh, 64, {32, 1}, 8, 2048, true, 34878}});
}

TEST(SlabBitmapCost, OfRefusals) {
  expect_cost({{calls::full_of_slabs, 128, {1, 1}, 4, 64, false, 914},
               {calls::full_of_slabs, 128, {1, 1}, 4, 16384, false, 5141},
               {calls::full_of_slabs, 128, {1, 1}, 4, 40000, false, 78},
               {calls::full_of_slabs, 128, {1, 32}, 2, 64, false, 10987},
               {calls::full_of_slabs, 128, {1, 32}, 2, 16384, false, 28959},
               {calls::full_of_slabs, 128, {1, 32}, 2, 40000, false, 1472},
               {calls::full_of_the_size, 32, {1, 1}, 4, 64, false, 2384},
               {calls::full_of_the_size, 32, {1, 1}, 4, 2048, false, 1930}});
}

}  // namespace slab_bitmap_cost_test
