// SPDX-License-Identifier: Apache-2.0
// The plasma on the host backend: nothing is lost while frames are taken and freed, physics is
// right and the same for every allocator, faults are noticed, and a pool that runs out does no
// harm.
#include <gmock/gmock.h>

#include "backend/backend.hpp"
#include "tests/support/schedules.hpp"
#include "tests/tool/measured_fixture.hpp"
#include "warpheap/warpheap.hpp"
#include "workloads/pic/backend/simulation.hpp"
#include "workloads/pic/settings.hpp"

namespace warpheap::tool { namespace {

using testing::HasSubstr;
using testing::IsEmpty;

pic_settings small_plasma() {
  pic_settings settings;
  settings.cells_x = 32;
  settings.cells_y = 8;
  settings.steps = 12;
  settings.pool_bytes = 4 * mebibyte;
  return settings;
}

TEST(Pic, KeepsParticlesEnergyAndMomentumWithEveryAllocator) {
  auto const on = make_host_backend();
  u64 state = 0;
  for (auto const& allocator : on->allocators()) {
    if (allocator.largest_bytes < small_plasma().frame_bytes) continue;
    auto const made = on->part<pic_job>().run(allocator.name, small_plasma());
    auto const& step = made.results.at(0);
    auto const& move = made.results.at(1);
    EXPECT_THAT(step.fault, IsEmpty()) << allocator.name;
    EXPECT_EQ(step.times_us.size(), 12u);
    EXPECT_EQ(move.times_us.size(), 12u);
    EXPECT_EQ(move.failures, 0u);
    EXPECT_LT(std::abs(figure(step, "energy_error")), 1e-3);
    EXPECT_LT(figure(step, "momentum_error"), 1e-7);
    // A frame comes and a frame goes in every step in every list.
    EXPECT_NEAR(figure(move, "mallocs_a_step"), 16, 1) << allocator.name;
    EXPECT_NEAR(figure(move, "frees_a_step"), 16, 1) << allocator.name;
    EXPECT_GT(figure(move, "moved_share"), 0.02);
    // Not approximately: equal to the last bit of every particle.
    EXPECT_TRUE(state == 0 || state == made.state) << allocator.name;
    state = made.state;
  }
}

TEST(Pic, EndsTheSameUnderEverySchedule) {
  auto settings = small_plasma();
  settings.cells_y = 4;
  settings.steps = 3;
  settings.frame_bytes = 672;  // of 32 particles: lists of many frames
  auto const expected = make_host_backend()->part<pic_job>().run("slab_bitmap", settings);
  ASSERT_THAT(expected.results[0].fault, IsEmpty());
  test::for_each_schedule(12, [&] {
    for (char const* const allocator : {"slab_bitmap", "ring_buffer"}) {
      auto const made = make_host_backend()->part<pic_job>().run(allocator, settings);
      EXPECT_THAT(made.results[0].fault, IsEmpty()) << allocator;
      EXPECT_EQ(made.state, expected.state) << allocator;
    }
  });
}

TEST(Pic, RunsWithAnyNumberOfSpeciesAndSizeOfFrames) {
  for (u32 const species : {1u, 2u, 3u, 7u})
    for (u64 const frame_bytes : {656u, 700u, 1500u, 8192u}) {
      auto settings = small_plasma();
      settings.species = species;
      settings.frame_bytes = frame_bytes;
      settings.particles_per_cell = 3;
      settings.steps = 5;
      settings.repeat = 2;
      settings.pool_bytes = 8 * mebibyte;
      for (char const* const allocator : {"slab_bitmap", "ring_buffer"}) {
        auto const made = make_host_backend()->part<pic_job>().run(allocator, settings);
        EXPECT_THAT(made.results[0].fault, IsEmpty()) << species << " species, frames of " << frame_bytes;
        EXPECT_EQ(made.results[0].times_us.size(), 10u);
      }
    }
}

// A hole behind the last particle of a list's own frames was filled twice, once the list had more
// holes than movers in a row.
// pic.P1
TEST(Pic, FillsEachHoleOnce) {
  auto settings = small_plasma();
  settings.cells_y = 16;
  settings.particles_per_cell = 10;
  settings.steps = 150;
  EXPECT_THAT(make_host_backend()->part<pic_job>().run("slab_bitmap", settings).results[0].fault, IsEmpty());
}

// Two streams of a plasma frequency of 1 through each other: waves grow by up to exp(0.35 t), out
// of noise.
TEST(Pic, StreamsThroughEachOtherMakeWaves) {
  auto settings = small_plasma();
  settings.particles_per_cell = 16;
  settings.steps = 100;
  auto const made = make_host_backend()->part<pic_job>().run("slab_bitmap", settings);
  EXPECT_THAT(made.results[0].fault, IsEmpty());
  EXPECT_GT(figure(made.results[0], "field_growth"), 10);
}

/// Forces twice as strong in one direction: no field compensates that.
struct one_sided_pusher {
  static pic::vector accelerate(pic::vector velocity, pic::vector field, float time) {
    float const twice = field.x > 0 ? 2 : 1;
    return {velocity.x - twice * field.x * time, velocity.y - field.y * time};
  }
};

/// A little faster in every step.
struct heating_pusher {
  static pic::vector accelerate(pic::vector velocity, pic::vector field, float time) {
    auto const right = pic::leap_frog::accelerate(velocity, field, time);
    float const more = time > 0 ? 1.002f : 1.0f;
    return {more * right.x, more * right.y};
  }
};

/// Velocities that are NaN.
struct dividing_pusher {
  static pic::vector accelerate(pic::vector velocity, pic::vector field, float time) {
    return {velocity.x + 0 / (time - time), field.y};
  }
};

template <class Pusher>
std::string fault_with() {
  auto const settings = small_plasma();
  return pic::simulation<default_allocator, Pusher>{"slab_bitmap", settings}.run().results[0].fault;
}

TEST(Pic, NoticesAPusherThatBreaksWhatIsConserved) {
  EXPECT_THAT(fault_with<pic::leap_frog>(), IsEmpty());
  EXPECT_THAT(fault_with<one_sided_pusher>(), HasSubstr("momentum changed"));
  EXPECT_THAT(fault_with<heating_pusher>(), HasSubstr("energy changed"));
  EXPECT_THAT(fault_with<dividing_pusher>(), HasSubstr("4096 particles are faster"));
}

/// Loses what some warps free.
class forgetting : public creation::slab_bitmap<> {
 public:
  forgetting() = default;
  void destroy(void* block) const {
    if (global_thread_index() / warp_lanes % 8 != 3) slab_bitmap<>::destroy(block);
  }
  static forgetting place(void* memory, size_t bytes) { return forgetting{slab_bitmap<>::place(memory, bytes)}; }

 private:
  explicit forgetting(slab_bitmap<> sound) : slab_bitmap<>{sound} {}
};

template <class Creation>
std::string pic_fault_over() {
  auto settings = small_plasma();
  settings.steps = 4;
  return pic::simulation<plain_allocator<Creation>>{"broken", settings}.run().results[0].fault;
}

TEST(Pic, NoticesAnAllocatorThatLosesBlocks) {
  EXPECT_THAT(pic_fault_over<forgetting>(), HasSubstr("live blocks, and the lists have"));
}

// pic.P2
TEST(Pic, SaysWhatFoundNoMemoryAndLosesNothing) {
  auto settings = small_plasma();
  settings.species = 8;
  settings.particles_per_cell = 2;
  // 128 frames: 64 lists of one frame, and as many again for arrivals
  settings.pool_bytes = mebibyte;
  auto const enough = make_host_backend()->part<pic_job>().run("slab_bitmap", settings);
  EXPECT_THAT(enough.results[0].fault, IsEmpty());
  settings.species = 12;  // 96 lists, and 32 frames
  auto const made = make_host_backend()->part<pic_job>().run("slab_bitmap", settings);
  EXPECT_THAT(made.results[0].fault, HasSubstr("times a particle found no memory in its new super cell"));
  EXPECT_GT(made.results[0].failures, 0u);
  // Which list a particle is in changes nothing else.
  settings.pool_bytes = 8 * mebibyte;
  auto const roomy = make_host_backend()->part<pic_job>().run("slab_bitmap", settings);
  EXPECT_THAT(roomy.results[0].fault, IsEmpty());
  EXPECT_EQ(made.state, roomy.state);
}

TEST(Pic, SaysWhatFoundNoMemoryAtTheStart) {
  auto settings = small_plasma();
  settings.species = 20;  // 160 lists
  settings.pool_bytes = mebibyte;
  auto const made = make_host_backend()->part<pic_job>().run("slab_bitmap", settings);
  EXPECT_THAT(made.results[0].fault, HasSubstr("8192 of 40960 particles found no memory in a pool of 1048576 bytes"));
  EXPECT_EQ(made.results[0].failures, 32u);
}

TEST(Pic, ARingBelongsToOneSpecies) {
  auto settings = small_plasma();
  settings.pool_bytes = mebibyte;
  EXPECT_THROW(make_host_backend()->part<pic_job>().run("ring_buffer", settings), std::invalid_argument)
      << "half a mebibyte each";
}

TEST(Pic, FramesThatAnAllocatorCannotServeAreSkipped) {
  auto settings = small_plasma();
  settings.frame_bytes = 8193;
  auto const& job = make_host_backend()->part<pic_job>();
  for (auto const& rows : {job.run("ring_buffer", settings).results, job.capacities("ring_buffer", settings)}) {
    ASSERT_EQ(rows.size(), 1u);
    EXPECT_EQ(rows[0].skipped, "ring_buffer serves at most 8192 bytes");
  }
}

// Eckert 2014, figure 5.6: with n species, each has an nth of the pool where heaps are divided
// beforehand.
TEST(Pic, OneSpeciesCanHaveAllOfASharedHeapAndAPartOfADividedOne) {
  auto settings = small_plasma();
  settings.pool_bytes = 8 * mebibyte;
  settings.species = 4;
  auto const shared = make_host_backend()->part<pic_job>().capacities("slab_bitmap", settings);
  auto const divided = make_host_backend()->part<pic_job>().capacities("ring_buffer", settings);
  ASSERT_EQ(shared.size(), 4u);
  ASSERT_EQ(divided.size(), 4u);
  for (u32 species = 1; species <= 4; ++species) {
    EXPECT_THAT(shared[species - 1].fault, IsEmpty());
    EXPECT_THAT(divided[species - 1].fault, IsEmpty());
    EXPECT_EQ(figure(shared[species - 1], "particles"), 1024 * 384);
    EXPECT_EQ(figure(divided[species - 1], "particles"), 1024 / species * 384);
  }
}

}}  // namespace warpheap::tool
