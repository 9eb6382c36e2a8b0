// SPDX-License-Identifier: Apache-2.0
// Slabs whose memory comes and goes, beside what growing_pools_test.cpp asks of every policy: runs,
// slabs that are taken away while lanes ask, and what the check knows.
#include <gmock/gmock.h>

#include "policy/creation/partial_pool_fixture.hpp"

namespace slab_bitmap_presence_test {

using namespace warpheap;
using namespace warpheap::slab_bitmap_parts;
using partial_pool = test::partial_pool<creation::slab_bitmap<>>;
constexpr u64 slab_bytes = partial_pool::unit_bytes;

/// Every slab of the first `expected` can be had, and all of them as one.
void expect_present(partial_pool const& pool, u32 expected, u64 ignored = 0) {
  pool.expect_committed(expected, ignored);
  EXPECT_EQ(pool.allocator().snapshot().statistics().slabs, expected);
  if (expected == 0) return;
  EXPECT_EQ(test::allocate(pool, {1, 1}, (expected + 1) * slab_bytes)[0], nullptr);
  void* const whole = test::allocate(pool, {1, 1}, expected * slab_bytes)[0];
  EXPECT_EQ(whole, pool.allocator().table().pool());
  test::release(pool, std::vector<void*>{whole});
}

TEST(SlabBitmapPresence, AbsentSlabsServeNobody) {
  for (u32 const slabs : {1u, 5u, 64u, 130u})
    for (u32 const present : {0u, 1u, slabs / 2, slabs - 1, slabs}) {
      SCOPED_TRACE(std::to_string(present) + " of " + std::to_string(slabs));
      partial_pool const pool{slabs, present};
      expect_present(pool, present);
    }
}

/// Each lane asks again and again, keeps every second block that it gets, and frees the others.
/// Odd lanes ask for runs now and then.
struct ask_often {
  WARPHEAP_DEVICE void operator()(creation::slab_bitmap<> heap, u32 rounds, void** kept) const {
    u32 const me = static_cast<u32>(global_thread_index());
    for (u32 round = 0; round < rounds; ++round) {
      u64 const bytes = me % 2 == 1 && round % 3 == 0 ? 2 * slab_bytes : u64{256} << (me % 4) << (round % 4);
      void* const block = heap.create(bytes);
      if (round % 2 == 0) heap.destroy(block);
      else kept[me * rounds + round] = block;
      simt::pause(1);
    }
  }
};

constexpr launch_shape asking{2, 12};
constexpr u32 rounds = 6;

/// What the lanes hold; no two hold one block, and all of it lies in the first `present` slabs.
std::vector<void*> held_apart(partial_pool const& pool, device_buffer<void*> const& kept, u32 present) {
  auto held = kept.to_host();
  std::erase(held, nullptr);
  EXPECT_EQ(std::set<void*>(held.begin(), held.end()).size(), held.size());
  for (void const* block : held) EXPECT_LT(pool.unit_of(block), present);
  return held;
}

TEST(SlabBitmapPresence, SlabsComeWhileLanesAsk) {
  u64 beyond = 0;
  test::for_each_schedule(400, [&] {
    partial_pool const pool{9, 2};
    device_buffer<void*> const kept(asking.blocks * asking.threads * rounds);
    stream const ours, theirs, others;
    launch(ours, asking, ask_often{}, pool.allocator(), rounds, kept.data());
    pool.extend(2, 5, theirs);
    pool.extend(2, 9, others);  // some of them again
    synchronize();
    EXPECT_EQ(pool.committed(), 9u);
    auto const held = held_apart(pool, kept, 9);
    for (void const* block : held) beyond += pool.unit_of(block) >= 2;
    pool.expect_quiet(held.size());
    test::release(pool, held);
    expect_present(pool, 9);
  });
  // On a GPU the kernels need not overlap.
  EXPECT_TRUE(test::on_gpu || beyond > 0) << "no lane ever got a block in a slab that came";
}

TEST(SlabBitmapPresence, WhatIsUsedStaysAndIsCounted) {
  partial_pool const pool{6, 6};
  auto const run = test::allocate(pool, {1, 1}, 3 * slab_bytes), small = test::allocate(pool, {1, 1}, 16);
  EXPECT_EQ(pool.used_end(), std::max(pool.unit_of(run[0]) + 3, pool.unit_of(small[0]) + 1));
  EXPECT_EQ(pool.decommit(0, 6), 4u);
  pool.expect_quiet(2);
  EXPECT_EQ(count_slots_by_grid(pool.allocator(), slab_bytes), 0u);
  pool.extend(0, 6);
  test::release(pool, run);
  test::release(pool, small);
  expect_present(pool, 6);
}

// Not at rest, which trim() asks for: even then every slab is either taken away or stays.
TEST(SlabBitmapPresence, SlabsAreTakenAwayWhileLanesAsk) {
  u64 taken = 0, stayed = 0;
  test::for_each_schedule(300, [&] {
    partial_pool const pool{8, 8};
    device_buffer<void*> const kept(asking.blocks * asking.threads * rounds);
    device_buffer<u64> const stay(1);
    stream const ours, theirs;
    launch(ours, asking, ask_often{}, pool.allocator(), rounds, kept.data());
    launch(theirs, {1, 4}, take_slabs_away{}, pool.allocator().table(), 3u, 8u, stay.data());
    synchronize();
    EXPECT_EQ(pool.allocator().snapshot().statistics().slabs, 3 + stay[0]);
    taken += 5 - stay[0];
    stayed += stay[0];
    auto const held = held_apart(pool, kept, 8);
    pool.expect_quiet(held.size());
    pool.extend(3, 8);
    test::release(pool, held);
    expect_present(pool, 8);
  });
  EXPECT_TRUE(test::on_gpu || (taken > 0 && stayed > 0));
}

/// Kernel: gives an absent slab its bit in an index, or takes away the header that says so.
struct damage_absent_slab {
  WARPHEAP_DEVICE void operator()(slab_table table, u32 slab, u32 which) const {
    if (which == 0) table.index(slab_table::free_slabs).xor_bit(slab);
    if (which == 1) table.header(slab).store(0, order::relaxed);
    if (which == 2) table.blocks(slab).try_claim(0, 1, order::relaxed);
  }
};

/// Lane 0 takes the only slab away, and lane 1 brings it back as soon as it is absent.
struct take_away_beside_growth {
  WARPHEAP_DEVICE void operator()(slab_table table, u64* stay) const {
    if (simt::lane_id() == 0) return take_slabs_away{}(table, 0, 1, stay);
    while (table.header(0).load(order::relaxed) != slab_header::absent().word) simt::pause(1);
    free_absent_slab(table, 0);
  }
};

// slab.R3: growth meets an absent slab as a run, also while it is being taken away.
TEST(SlabBitmapPresence, ASlabThatIsTakenAwayComesBackAtOnce) {
  test::for_each_schedule(400, [] {
    partial_pool const pool{1, 1};
    device_buffer<u64> const stay(1);
    launch({1, 2}, take_away_beside_growth{}, pool.allocator().table(), stay.data());
    synchronize();
    EXPECT_EQ(stay[0], 0u);
    expect_present(pool, 1);
  });
}

TEST(SlabBitmapPresence, TheCheckKnowsAbsentSlabs) {
  constexpr char const* said[] = {"D4", "R1", "D7"};
  for (u32 which = 0; which < 3; ++which) {
    partial_pool const pool{4, 2};
    launch({1, 1}, damage_absent_slab{}, pool.allocator().table(), 3u, which);
    synchronize();
    auto const report = pool.allocator().snapshot().check_invariants();
    EXPECT_THAT(report, testing::Contains(testing::HasSubstr(said[which]))) << which;
  }
}

}  // namespace slab_bitmap_presence_test
