// SPDX-License-Identifier: Apache-2.0
// Runs of slabs in pools of thousands of slabs, where a scan that meets another one goes on from
// a random place: the one free run is found wherever it lies, and none that is too short.
#include <vector>

#include "policy/creation/slab_bitmap/pool_fixture.hpp"
#include "support/refusals.hpp"
#include "warpheap/util/random.hpp"

namespace slab_bitmap_runs_test {

using namespace warpheap;
using test::tiny_pool;

constexpr u64 slab_bytes = tiny_pool::slab_bytes;
constexpr u32 many_slabs = 4096 + 300;

/// Slabs of 16 KiB, however many there are.
constexpr creation::slab_bitmap_config small_slabs{.max_slab_log2 = 14};
using large_pool = test::quiet_pool<creation::slab_bitmap<small_slabs>>;

/// One lane asks for blocks of these many slabs, one after the other.
std::vector<u64> ask_for_slabs(large_pool const& pool, std::vector<u64> const& slabs) {
  std::vector<u64> bytes, addresses;
  for (u64 const length : slabs) bytes.push_back(length * slab_bytes);
  for (auto const& block : test::ask(pool, bytes)) addresses.push_back(block.address);
  return addresses;
}

TEST(SlabBitmapRuns, TheOnlyFreeRunIsFoundInAPoolOfThousandsOfSlabs) {
  large_pool const pool{many_slabs * slab_bytes};
  u64 const begin = reinterpret_cast<u64>(pool.allocator().table().pool());
  ask_for_slabs(pool, std::vector<u64>(many_slabs, 1));
  pool.expect_quiet(many_slabs);
  for (u64 const length : {2u, 3u, 70u})
    for (u64 const first : {u64{0}, u64{1}, u64{62}, u64{4000}, 4096 - length, 4097 - length, u64{4095}, u64{4096},
                            u64{4100}, many_slabs - length}) {
      SCOPED_TRACE(testing::Message() << length << " slabs from slab " << first);
      u64 const run = begin + first * slab_bytes;
      std::vector<u64> freed;
      for (u64 slab = 0; slab < length; ++slab) freed.push_back(run + slab * slab_bytes);
      test::free_addresses(pool, freed);
      // Scans go on from random places.
      for (u32 turn = 0; turn < 4; ++turn) {
        ASSERT_EQ(ask_for_slabs(pool, {length + 1, length, 1, 2}), (std::vector<u64>{0, run, 0, 0}));
        test::free_addresses(pool, {run});
      }
      ask_for_slabs(pool, std::vector<u64>(length, 1));
      pool.expect_quiet(many_slabs);
    }
}

// The run begins before the random place from which a scan goes on, and ends behind it. It
// reaches beyond the slabs that are looked at from the lowest on, so that the scan has to go on.
TEST(SlabBitmapRuns, ARunAroundThePlaceFromWhichAScanGoesOnIsFound) {
  constexpr u64 length = 1400, first = 4097 - length;  // go on from slab 0, 1,400 or 2,800
  static_assert(many_slabs / length == 3 && first < 2 * length && first + length > 2 * length);
  large_pool const pool{many_slabs * slab_bytes};
  u64 const run = reinterpret_cast<u64>(pool.allocator().table().pool()) + first * slab_bytes;
  ask_for_slabs(pool, std::vector<u64>(many_slabs, 1));
  std::vector<u64> freed;
  for (u64 slab = 0; slab < length; ++slab) freed.push_back(run + slab * slab_bytes);
  test::free_addresses(pool, freed);
  for (u32 turn = 0; turn < 24; ++turn) {
    ASSERT_EQ(ask_for_slabs(pool, {length + 1, length}), (std::vector<u64>{0, run})) << "turn " << turn;
    test::free_addresses(pool, {run});
  }
}

/// Puts slabs into the index of reclaimable slabs.
struct name_in_vain {
  WARPHEAP_DEVICE void operator()(test::slab_allocator heap, u64 const* slabs, u32 count) const {
    for (u32 i = 0; i < count; ++i)
      heap.table().index(slab_bitmap_parts::slab_table::reclaimable).set(static_cast<u32>(slabs[i]));
  }
};

/// The first of `length` free slabs in a row; `slabs` if there is none.
u64 lowest_run(std::vector<bool> const& is_free, u64 length) {
  u64 row = 0;
  for (u64 slab = 0; slab < is_free.size(); ++slab) {
    row = is_free[slab] ? row + 1 : 0;
    if (row == length) return slab + 1 - length;
  }
  return is_free.size();
}

// The index may name slabs that are in use: a scan that has locked some slabs before such a one
// gives them back, and goes on right behind it.
TEST(SlabBitmapRuns, TheLowestRunIsFoundAmongSlabsThatAreNamedInVain) {
  constexpr u32 slabs = 200;
  for (u32 seed = 0; seed < 40; ++seed) {
    tiny_pool const pool{slabs};
    u64 const begin = reinterpret_cast<u64>(pool.allocator().table().pool());
    test::ask(pool, std::vector<u64>(slabs, slab_bytes));
    random_sequence random{seed};
    std::vector<bool> is_free(slabs);
    std::vector<u64> freed, in_vain;
    for (u64 slab = 0; slab < slabs; ++slab) {
      if (random.below(8) != 0) is_free[slab] = true, freed.push_back(begin + slab * slab_bytes);
      else if (random.below(4) != 0) in_vain.push_back(slab);
    }
    test::free_addresses(pool, freed);
    device_buffer<u64> const list{in_vain.empty() ? std::vector<u64>{0} : in_vain};
    launch({1, 1}, name_in_vain{}, pool.allocator(), static_cast<u64 const*>(list.data()),
           static_cast<u32>(in_vain.size()));
    for (u64 length = 40; length >= 2; --length) {
      u64 const first = lowest_run(is_free, length);
      u64 const got = test::ask(pool, {length * slab_bytes})[0].address;
      ASSERT_EQ(got, first == slabs ? 0 : begin + first * slab_bytes) << length << " slabs, seed " << seed;
      for (u64 slab = first; got != 0 && slab < first + length; ++slab) is_free[slab] = false;
    }
  }
}

// A scan that meets a run in the making, or one that is being freed, waits or gives back what it
// has locked. It passes over nothing that stays free.
TEST(SlabBitmapRuns, ARunThatStaysFreeIsNotRefused) {
  u64 served = 0;
  for (u32 const slabs : {3u, 5u, 8u})
    for (launch_shape const shape : {launch_shape{2, 1}, {3, 1}, {1, 3}, {2, 3}})
      test::for_each_schedule(60, [&] {
        tiny_pool const pool{slabs};
        std::vector<u64> places;
        for (u64 slab = 0; slab + 2 <= slabs; ++slab)
          places.push_back(reinterpret_cast<u64>(pool.allocator().table().pool()) + slab * slab_bytes);
        auto const seen =
            test::refusals_of(pool.allocator(), shape, places, 2 * slab_bytes, 6, test::schedule_seed() + 1);
        EXPECT_EQ(seen.unfounded, 0u) << slabs << " slabs";
        served += seen.served;
        pool.expect_empty();
      });
  EXPECT_GT(served, 0u);
}

/// Each lane takes and frees a run again and again.
struct take_runs {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 bytes, u32 rounds, u32* refused) const {
    for (u32 round = 0; round < rounds; ++round) {
      void* const run = heap.create(bytes);
      if (!run) atomic_ref<u32>{*refused}.fetch_add(1, order::relaxed);
      heap.destroy(run);
    }
  }
};

// The lanes meet at the first slabs, and go on from random places. Most slabs are touched by none.
TEST(SlabBitmapRuns, ALaneThatMeetsAnotherOneInALargePoolIsServed) {
  large_pool const pool{many_slabs * slab_bytes};
  for (u64 const slabs : {2u, 60u})
    test::for_each_schedule(40, [&] {
      device_buffer<u32> const refused(1);
      launch({4, 2}, take_runs{}, pool.allocator(), slabs * slab_bytes, 3u, refused.data());
      synchronize();
      EXPECT_EQ(refused[0], 0u);
      pool.expect_quiet(0);
    });
}

/// Asks for blocks until one is refused. One lane.
struct ask_until_refused {
  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap, u64 bytes, u64* got) const {
    while (heap.create(bytes)) ++*got;
  }
};

// Of a pool of 4 GiB one lane got 3,129 runs, where 3,276 lie side by side.
TEST(SlabBitmapRuns, RunsOfOneLengthLeaveNoGaps) {
  for (u32 const length : {3u, 5u, 77u}) {
    large_pool const pool{many_slabs * slab_bytes};
    device_buffer<u64> const got(1);
    launch({1, 1}, ask_until_refused{}, pool.allocator(), length * slab_bytes, got.data());
    synchronize();
    EXPECT_EQ(got[0], many_slabs / length) << "runs of " << length << " slabs";
  }
}

}  // namespace slab_bitmap_runs_test
