// SPDX-License-Identifier: Apache-2.0
// nullptr means that no suitable block stayed free during the whole call. So a block that no other
// lane can take is found, whatever others do beside the search; and a search ends, whatever others
// do. Each claim is tested on mutants that break it, too.
#include "pool_fixture.hpp"

#include <algorithm>
#include <type_traits>

namespace warpheap::test { namespace {

using halloc_parts::no_faults;

/// How thread 0 asks: like the others, or by a search at once, which heads and sets could spare it.
enum class way : u32 { create, search };

/// Thread 0 asks once. All others ask for sizes of their own, and give back what they get.
struct ask_beside_others {
  way how;
  u64 bytes;
  u64 others[4] = {};
  u32 rounds = 0;
  u64 seed = 0;

  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap, void** got) const {
    u32 const me = static_cast<u32>(global_thread_index());
    random_sequence random{seed * 1000 + me};
    pause_for(random.below(40));
    if (me == 0) {
      *got = how == way::create ? heap.create(bytes) : search(heap.table());
      return;
    }
    for (u32 round = 0; round < rounds; ++round) {
      void* const block = heap.create(others[(me + round + seed) % 4]);
      pause_for(random.below(4));
      heap.destroy(block);
      pause_for(random.below(4));
    }
  }

  template <class Table>
  WARPHEAP_DEVICE void* search(Table const& table) const {
    u32 const alone = 1u << simt::lane_id();
    if (bytes > halloc_parts::largest_bytes)
      return halloc_parts::large_search<Table>::run(table, alone, halloc_parts::large_heap::order_for(bytes), 0);
    return halloc_parts::block_search<Table>::run(table, alone, halloc_parts::size_for(static_cast<u32>(bytes)), 0);
  }
};
constexpr way ways[] = {way::create, way::search};

/// What thread 0 got.
template <class Allocator>
void* ask_beside(halloc_pool<Allocator> const& pool, launch_shape shape, ask_beside_others body) {
  device_buffer<void*> const got(1);
  body.seed = schedule_seed() + 1;
  launch(shape, body, pool.allocator(), got.data());
  synchronize();
  return got[0];
}

template <class Faults = no_faults>
using few = creation::halloc<few_slabs, Faults>;

/// A heap of 16-byte blocks with holes of one block each, into which no longer block fits. Others
/// ask for longer ones in vain, and are promised as many chunks as there are.
template <class Faults>
bool finds_a_hole(u32 holes, launch_shape shape, way how) {
  halloc_pool<few<Faults>> const pool{2};
  auto blocks = allocate(pool, {65, 32}, 16);
  std::erase(blocks, nullptr);
  std::sort(blocks.begin(), blocks.end());
  std::vector<void*> freed;
  for (u32 i = 0; i < holes; ++i) freed.push_back(blocks[64 * i + (schedule_seed() + 5 * i) % 64]);
  release(pool, freed);
  void* const got = ask_beside(pool, shape, {how, 16, {32, 128, 64, 256}, 4, 0});
  return blocks.size() == 2048 && std::count(freed.begin(), freed.end(), got) == 1 &&
         pool.is_quiet(blocks.size() - holes + 1);
}

TEST(HallocPromise, AHoleThatNobodyElseFitsIntoIsFound) {
  for (u32 const holes : {1u, 9u, 31u})
    for_each_schedule(300, [&] {
      constexpr launch_shape shapes[] = {{4, 1}, {2, 2}, {1, 5}, {2, 17}};
      EXPECT_TRUE(finds_a_hole<no_faults>(holes, shapes[schedule_seed() % 4], ways[schedule_seed() / 4 % 2]));
    });
}

/// Others take three blocks in all, of any kind or as large as a slab, and ask in vain for more
/// than there is. So at any time one slab of four has no owner, though it may be on its way between
/// sets and TBuddy.
template <class Faults>
bool finds_a_slab(u64 bytes, way how) {
  constexpr launch_shape shapes[] = {{4, 1}, {2, 2}, {1, 4}};
  halloc_pool<few<Faults>> const pool{4};
  auto const seed = schedule_seed();
  ask_beside_others const body{how, bytes, {u64{16} << seed % 8, 16384, 16384, 5 * 16384}, 1, 0};
  return ask_beside(pool, shapes[seed % 3], body) != nullptr && pool.is_quiet(1);
}
constexpr u64 all_kinds[] = {16, 24, 3072, 700, 16384};

TEST(HallocPromise, ASlabThatNobodyElseTakesIsFound) {
  for (u64 const bytes : all_kinds)
    for_each_schedule(400, [&] {
      for (way const how : ways) EXPECT_TRUE(finds_a_slab<no_faults>(bytes, how));
    });
}

/// One slab has no owner. Others ask for two slabs: they bring it back to TBuddy again and again,
/// and all rows take it from there.
template <class Faults>
bool finds_a_slab_on_its_way(u64 bytes, way how) {
  constexpr launch_shape shapes[] = {{4, 1}, {2, 2}, {1, 4}, {6, 1}};
  halloc_pool<few<Faults>> const pool{3};
  auto const seed = schedule_seed();
  auto const large = allocate(pool, {2, 1}, 16384);
  ask_beside_others const body{how, bytes, {32768, 65536, 32768, 32768}, 6, 0};
  return large[0] && large[1] && ask_beside(pool, shapes[seed % 4], body) != nullptr && pool.is_quiet(3);
}

TEST(HallocPromise, ASlabThatGoesToAndFroIsFound) {
  for (u64 const bytes : all_kinds)
    for_each_schedule(300, [&] {
      for (way const how : ways) EXPECT_TRUE(finds_a_slab_on_its_way<no_faults>(bytes, how));
    });
}

/// Thread 0 searches a fresh heap of four slabs. Meanwhile a row gets a slab from TBuddy, and one
/// more to have it ready, which may be behind the search; then others take the last two.
struct search_beside_a_move {
  u64 seed;

  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap, void** got) const {
    u32 const me = static_cast<u32>(global_thread_index());
    random_sequence random{seed * 1000 + me};
    if (me == 0) {
      *got = ask_beside_others{.how = way::search, .bytes = 3072}.search(heap.table());
      return;
    }
    pause_for(me == 1 ? random.below(20) : 20 + random.below(40));
    got[me] = heap.create(me == 1 ? 16 : 16384);
  }
};

template <class Faults>
bool finds_what_was_moved() {
  constexpr launch_shape shapes[] = {{4, 1}, {1, 4}, {2, 2}};
  halloc_pool<few<Faults>> const pool{4};
  device_buffer<void*> const got(4);
  auto const seed = schedule_seed();
  launch(shapes[seed % 3], search_beside_a_move{seed}, pool.allocator(), got.data());
  synchronize();
  auto const all = got.to_host();
  return all[0] && pool.is_quiet(4 - std::count(all.begin(), all.end(), nullptr));
}

TEST(HallocPromise, ASlabThatWasMovedBehindASearchIsFound) {
  for_each_schedule(1000, [] { EXPECT_TRUE(finds_what_was_moved<no_faults>()); });
}

/// Others take two chunks of the only slab and give them back, and so leave it empty and free now
/// and then. Three of its five places for the largest block never have an owner.
template <class Faults>
bool finds_a_place(launch_shape shape, way how) {
  halloc_pool<few<Faults>> const pool{1};
  return ask_beside(pool, shape, {how, 3072, {384, 384, 384, 384}, 1, 0}) != nullptr && pool.is_quiet(1);
}

TEST(HallocPromise, APlaceInASlabThatIsJustLeftEmptyIsFound) {
  for_each_schedule(600, [] {
    constexpr launch_shape shapes[] = {{3, 1}, {1, 3}};
    for (way const how : ways) EXPECT_TRUE(finds_a_place<no_faults>(shapes[schedule_seed() % 2], how));
  });
}

/// There are four pairs of slabs. One block and the two that others take spoil three of them for a
/// block of two slabs. Others also ask in vain for the whole pool.
template <class Faults>
bool finds_a_pair(way how) {
  constexpr launch_shape shapes[] = {{3, 1}, {1, 3}};
  halloc_pool<few<Faults>> const pool{8};
  auto const seed = schedule_seed();
  auto const one = allocate(pool, {1, 1}, 16);
  constexpr u64 all = 8 * 16384;
  return one[0] && ask_beside(pool, shapes[seed % 2], {how, 32768, {16, all, all, all}, 3, 0}) != nullptr &&
         pool.is_quiet(2);
}

TEST(HallocPromise, APairOfSlabsThatNobodyElseTakesIsFound) {
  for_each_schedule(600, [] {
    for (way const how : ways) EXPECT_TRUE(finds_a_pair<no_faults>(how));
  });
}

/// A full heap refuses, then a block is freed, then the heap serves.
template <class Faults>
bool serves_after_a_free(u64 bytes, u64 blocks_there) {
  halloc_pool<few<Faults>> const pool{1};
  auto blocks = allocate(pool, {static_cast<u32>(blocks_there / 16 + 1), 16}, bytes);
  std::erase(blocks, nullptr);
  bool as_said = blocks.size() == blocks_there;
  for (u32 round = 0; round < 3 && as_said; ++round) {
    as_said = !allocate(pool, {1, 1}, bytes)[0];
    release(pool, {blocks[round]});
    as_said = as_said && allocate(pool, {1, 1}, bytes)[0] == blocks[round];
  }
  return as_said && pool.is_quiet(blocks_there);
}

TEST(HallocPromise, AFullHeapServesWhatIsFreed) {
  for_each_schedule(100, [] {
    EXPECT_TRUE(serves_after_a_free<no_faults>(3072, 5));
    EXPECT_TRUE(serves_after_a_free<no_faults>(48, 340));
    EXPECT_TRUE(serves_after_a_free<no_faults>(16384, 1));
  });
}

/// Thread 0 searches for more chunks in a row than there are. Until it has its answer, the others
/// give back one chunk each of a full heap and take one again, so that there is always a slab to be
/// looked at.
struct search_beside_churn {
  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap, void** blocks, u32* ended, void** got) const {
    using table_type = std::remove_cvref_t<decltype(heap.table())>;
    u32 const me = static_cast<u32>(global_thread_index());
    atomic_ref<u32> const told{*ended};
    if (me == 0) {
      *got = halloc_parts::block_search<table_type>::run(heap.table(), 1u << simt::lane_id(),
                                                         halloc_parts::size_for(128), 0);
      told.store(1, order::relaxed);
      return;
    }
    while (told.load(order::relaxed) == 0) {
      heap.destroy(blocks[me]);
      do {
        blocks[me] = heap.create(16);
        simt::pause(1);
      } while (!blocks[me] && told.load(order::relaxed) == 0);
    }
  }
};

/// And no search looks at a slab more than twice.
template <class Faults>
bool ends_beside_churn(launch_shape shape) {
  constexpr u32 slabs = 3, words = 32;
  halloc_pool<few<Faults>> const pool{slabs};
  auto full = allocate(pool, {97, 32}, 16);
  std::erase(full, nullptr);
  std::sort(full.begin(), full.end());
  std::vector<void*> mine;
  for (u32 i = 0; i < 8; ++i) mine.push_back(full[(1024 * i + 77 * i) % full.size()]);
  device_buffer<void*> const blocks{mine}, got(1);
  device_buffer<u32> const ended(1);
  pool.allocator().clear_work({});
  launch(shape, search_beside_churn{}, pool.allocator(), blocks.data(), ended.data(), got.data());
  synchronize();
  auto const work = pool.allocator().work();
  auto const left = blocks.to_host();
  return full.size() == 1024 * slabs && !got[0] && work.searches != 0 && work.looks <= 2 * slabs * work.searches &&
         work.word_looks <= 2 * slabs * words * work.searches &&
         pool.is_quiet(full.size() - std::count(left.begin(), left.end(), nullptr));
}

TEST(HallocPromise, ASearchEndsWhileOthersChurnOnAFullHeap) {
  for_each_schedule(300, [] {
    constexpr launch_shape shapes[] = {{8, 1}, {2, 4}, {1, 8}, {4, 2}};
    EXPECT_TRUE(ends_beside_churn<no_faults>(shapes[schedule_seed() % 4]));
  });
}

#if !defined(__CUDACC__)

/// Faults after which a mutant that hangs is stopped.
constexpr u64 hung = 2'000'000;

struct slow_search : no_faults {
  static void linger_in_search() { pause_for(30); }
};
struct slow_free : no_faults {
  static void linger_in_free() { pause_for(20); }
};

template <class Faults>
void expect_finds_everything() {
  for_each_schedule(300, [] {
    EXPECT_TRUE(finds_what_was_moved<Faults>());
    EXPECT_TRUE(finds_a_place<Faults>({3, 1}, way::search));
    EXPECT_TRUE(finds_a_pair<Faults>(way::search));
    EXPECT_TRUE(finds_a_slab<Faults>(700, way::search));
    EXPECT_TRUE(finds_a_slab_on_its_way<Faults>(16, way::search));
    EXPECT_TRUE(finds_a_slab_on_its_way<Faults>(16384, way::create));
  });
}

TEST(HallocPromise, SlowSearchesFindAllOfThat) { expect_finds_everything<slow_search>(); }
TEST(HallocPromise, SearchesFindAllOfThatBesideSlowFrees) { expect_finds_everything<slow_free>(); }

// halloc.N1 left out: a slab is full if its count says so.
struct believes_counts : no_faults {
  static constexpr bool decides_by_words = false;
};
TEST(HallocPromise, AMutantThatBelievesCountsIsCaught) {
  EXPECT_TRUE(find_failing_schedule(
      300,
      [] {
        return finds_a_hole<believes_counts>(9, {2, 17}, way::search);
      },
      hung));
}

// A locked slab is taken to be in use.
struct passes_locked_slabs : no_faults {
  static constexpr bool waits_for_locked_slabs = false;
};
TEST(HallocPromise, AMutantThatPassesLockedSlabsIsCaught) {
  EXPECT_TRUE(find_failing_schedule(
      600,
      [] {
        return finds_a_place<passes_locked_slabs>({3, 1}, way::search);
      },
      hung));
}

// halloc.N3 left out: slabs that came from TBuddy behind the search are missed.
struct ignores_moves : slow_search {
  static constexpr bool heeds_moves = false;
};
TEST(HallocPromise, AMutantThatIgnoresMovesIsCaught) {
  EXPECT_TRUE(find_failing_schedule(
      600, [] { return finds_what_was_moved<ignores_moves>(); }, hung));
}

// The numbers of searches left out: any search that ever failed is believed.
struct believes_old_searches : no_faults {
  static constexpr bool compares_numbers = false;
};
TEST(HallocPromise, AMutantThatBelievesOldSearchesIsCaught) {
  EXPECT_TRUE(find_failing_schedule(
      10, [] { return serves_after_a_free<believes_old_searches>(3072, 5); }, hung));
}

// halloc.A4 left out: a note holds for ever.
struct believes_old_notes : no_faults {
  static constexpr bool compares_versions = false;
};
TEST(HallocPromise, AMutantThatBelievesOldNotesIsCaught) {
  EXPECT_TRUE(find_failing_schedule(
      10, [] { return serves_after_a_free<believes_old_notes>(3072, 5); }, hung));
}

// A search begins again when it lost a race.
struct begins_again : no_faults {
  static constexpr bool goes_on = false;
};
TEST(HallocPromise, AMutantThatBeginsAgainIsCaught) {
  EXPECT_TRUE(find_failing_schedule(
      200,
      [] {
        return ends_beside_churn<begins_again>({1, 8});
      },
      hung));
}

#endif

}}  // namespace warpheap::test
