// Slabs whose memory comes and goes: those that are absent serve nobody, whatever else runs, and
// none is lost or there twice.
#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "pool_fixture.hpp"

namespace slab_bitmap_presence_test {

using namespace warpheap;
using namespace warpheap::slab_bitmap_parts;
using test::tiny_pool;

constexpr u64 slab_bytes = tiny_pool::slab_bytes;

/// A pool of which the first slabs are present.
class partial_pool : public tiny_pool {
 public:
  partial_pool(u32 slabs, u32 present)
      : tiny_pool{slabs}, slabs_{slabs}, growth_{std::vector<u64>{present * slab_bytes, 0}} {
    allocator().initialize({}, present_bytes());
    synchronize();
  }

  u64* present_bytes() const { return growth_.data(); }
  u32 present() const { return static_cast<u32>(growth_[0] / slab_bytes); }
  void extend(u32 from, u32 to, stream_view on = {}) const {
    allocator().extend(from * slab_bytes, to * slab_bytes, present_bytes(), on);
  }
  u32 used_end() const {
    device_buffer<u64> const end(1);
    allocator().find_used_end(slabs_ * slab_bytes, end.data());
    synchronize();
    return static_cast<u32>(end[0] / slab_bytes);
  }
  /// How many slabs stayed.
  u64 withdraw(u32 from, u32 to) const {
    device_buffer<u64> const stay(1);
    allocator().withdraw(from * slab_bytes, to * slab_bytes, stay.data());
    synchronize();
    return stay[0];
  }

  u32 slab_of(void const* memory) const {
    u64 const offset = reinterpret_cast<u64>(memory) - reinterpret_cast<u64>(allocator().table().pool());
    return static_cast<u32>(offset / slab_bytes);
  }

  /// Every slab of the first `expected` can be had, alone or with the others, and no other.
  void expect_present(u32 expected) const {
    expect_quiet(0);
    EXPECT_EQ(allocator().snapshot().statistics().slabs, expected);
    EXPECT_EQ(allocator().snapshot().statistics().pool_bytes, expected * slab_bytes);
    EXPECT_EQ(count_slots_by_grid(allocator(), slab_bytes), expected);
    if (expected == 0) return;
    EXPECT_EQ(test::allocate(*this, {1, 1}, (expected + 1) * slab_bytes)[0], nullptr);
    void* const whole = test::allocate(*this, {1, 1}, expected * slab_bytes)[0];
    EXPECT_EQ(whole, allocator().table().pool());
    test::release(*this, std::vector<void*>{whole});
    auto const blocks = test::allocate(*this, {1, expected + 3}, slab_bytes);
    std::set<u32> slabs;
    for (void const* block : blocks)
      if (block) slabs.insert(slab_of(block));
    EXPECT_EQ(slabs.size(), expected);
    EXPECT_EQ(slabs.count(expected - 1), 1u);
    test::release(*this, blocks);
    expect_quiet(0);
  }

 private:
  u32 slabs_;
  device_buffer<u64> growth_;
};

TEST(SlabBitmapPresence, AbsentSlabsServeNobody) {
  for (u32 const slabs : {1u, 5u, 64u, 130u})
    for (u32 const present : {0u, 1u, slabs / 2, slabs - 1, slabs}) {
      SCOPED_TRACE(std::to_string(present) + " of " + std::to_string(slabs));
      partial_pool const pool{slabs, present};
      pool.expect_present(present);
    }
}

TEST(SlabBitmapPresence, NothingAtAnAbsentSlabIsABlock) {
  partial_pool const pool{8, 3};
  u64 const pool_begin = reinterpret_cast<u64>(pool.allocator().table().pool());
  std::vector<u64> strange;
  for (u32 slab = 3; slab < 8; ++slab)
    for (u64 const inside : {u64{0}, u64{16}, slab_bytes / 2})
      strange.push_back(pool_begin + slab * slab_bytes + inside);
  test::free_addresses(pool, strange);
  EXPECT_EQ(pool.allocator().snapshot().statistics().foreign_frees, strange.size());
  pool.expect_quiet(0, strange.size());
  EXPECT_EQ(pool.allocator().snapshot().statistics().slabs, 3u);
}

TEST(SlabBitmapPresence, GrowthMakesExactlyTheNewSlabsFree) {
  partial_pool const pool{70, 2};
  auto const held = test::allocate(pool, {1, 2}, slab_bytes);
  for (u32 const to : {3u, 64u, 70u}) {
    pool.extend(pool.present(), to);
    synchronize();
    EXPECT_EQ(pool.present(), to);
    pool.expect_quiet(2);
    EXPECT_EQ(count_slots_by_grid(pool.allocator(), slab_bytes), to - 2);
  }
  test::release(pool, held);
  pool.expect_present(70);
}

TEST(SlabBitmapPresence, GrowthAgainChangesNothing) {
  partial_pool const pool{6, 2};
  pool.extend(2, 6);
  synchronize();
  auto const held = test::allocate(pool, {1, 6}, slab_bytes);
  EXPECT_EQ(std::count(held.begin(), held.end(), nullptr), 0);
  pool.extend(2, 6);
  pool.extend(0, 3);
  synchronize();
  EXPECT_EQ(pool.present(), 6u);
  pool.expect_quiet(6);
  EXPECT_EQ(test::allocate(pool, {1, 1}, 16)[0], nullptr);
  test::release(pool, held);
  pool.expect_present(6);
}

TEST(SlabBitmapPresence, AResetKeepsWhatIsPresent) {
  partial_pool const pool{6, 2};
  test::allocate(pool, {1, 2}, slab_bytes);
  pool.extend(2, 4);
  pool.allocator().initialize({}, pool.present_bytes());
  synchronize();
  pool.expect_present(4);
}

/// Each lane asks again and again, keeps every second block that it gets, and frees the others.
/// Odd lanes ask for runs now and then.
struct ask_often {
  WARPHEAP_DEVICE void operator()(test::slab_allocator heap, u32 rounds, void** kept) const {
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
  for (void const* block : held) EXPECT_LT(pool.slab_of(block), present);
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
    EXPECT_EQ(pool.present(), 9u);
    auto const held = held_apart(pool, kept, 9);
    for (void const* block : held) beyond += pool.slab_of(block) >= 2;
    pool.expect_quiet(held.size());
    test::release(pool, held);
    pool.expect_present(9);
  });
  // On a GPU nobody says that the kernels overlap.
  EXPECT_TRUE(test::on_gpu || beyond > 0) << "no lane ever got a block in a slab that came";
}

TEST(SlabBitmapPresence, TakesAwayWhatNobodyUses) {
  partial_pool const pool{8, 8};
  auto blocks = test::allocate(pool, {1, 8}, slab_bytes);
  std::sort(blocks.begin(), blocks.end());
  EXPECT_EQ(pool.used_end(), 8u);
  void* const third = blocks[2];
  blocks.erase(blocks.begin() + 2);
  test::release(pool, blocks);
  EXPECT_EQ(pool.used_end(), 3u) << "empty slabs that have a class are nobody's";
  EXPECT_EQ(pool.withdraw(3, 8), 0u);
  pool.expect_quiet(1);
  EXPECT_EQ(pool.allocator().snapshot().statistics().slabs, 3u);
  EXPECT_EQ(count_slots_by_grid(pool.allocator(), slab_bytes), 2u);
  // Where a block was, none is, and its slab comes again.
  test::free_addresses(pool, {reinterpret_cast<u64>(blocks[6])});
  pool.expect_quiet(1, 1);
  pool.extend(3, 6);
  synchronize();
  EXPECT_EQ(count_slots_by_grid(pool.allocator(), slab_bytes), 5u);
  test::release(pool, std::vector<void*>{third});
  EXPECT_EQ(count_slots_by_grid(pool.allocator(), slab_bytes), 6u);
  pool.expect_quiet(0, 1);
}

TEST(SlabBitmapPresence, WhatIsUsedStaysAndIsCounted) {
  partial_pool const pool{6, 6};
  auto const run = test::allocate(pool, {1, 1}, 3 * slab_bytes), small = test::allocate(pool, {1, 1}, 16);
  EXPECT_EQ(pool.used_end(), std::max(pool.slab_of(run[0]) + 3, pool.slab_of(small[0]) + 1));
  EXPECT_EQ(pool.withdraw(0, 6), 4u);
  pool.expect_quiet(2);
  EXPECT_EQ(count_slots_by_grid(pool.allocator(), slab_bytes), 0u);
  pool.extend(0, 6);
  test::release(pool, run);
  test::release(pool, small);
  pool.expect_present(6);
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
    pool.expect_present(8);
  });
  EXPECT_TRUE(test::on_gpu || (taken > 0 && stayed > 0));
}

/// Kernel: gives an absent slab its bit in an index, or takes away the role that says so.
struct damage_absent_slab {
  WARPHEAP_DEVICE void operator()(slab_table table, u32 slab, u32 which) const {
    if (which == 0) table.index(slab_table::free_slabs).toggle(slab);
    if (which == 1) table.role(slab).store(0, order::relaxed);
    if (which == 2) table.blocks(slab).try_claim(0, 1, order::relaxed);
  }
};

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
