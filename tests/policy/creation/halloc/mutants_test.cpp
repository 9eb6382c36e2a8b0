// SPDX-License-Identifier: Apache-2.0
// Mutants: a step of the protocol left out or turned around must be seen by the test that
// guards it.
#include "pool_fixture.hpp"

#include <algorithm>

namespace warpheap::test { namespace {

#if !defined(__CUDACC__)

using halloc_parts::no_faults;
using halloc_parts::slab_state;

// halloc.A3 left out: a slab is locked for another life while it has blocks.
struct locks_what_is_not_empty : no_faults {
  static bool may_lock(slab_state seen) { return seen.used() <= 8; }
};

// halloc.A8 left out: a lane that found a free slab in the set takes it, whether it is locked by
// then or not.
struct takes_free_slabs_unlocked : no_faults {
  static constexpr bool locks_free_slabs = false;
};

// A lane that once saw a row's head full replaces the head, though another head has been put in its
// place.
struct replaces_any_head : no_faults {
  static constexpr bool rechecks_head = false;
};

// Slow where other lanes need time to interfere.
struct slow_steps : no_faults {
  static void linger_in_search() { wait(6); }
  static void linger_in_free() { wait(200); }

  static void wait(u32 turns) {
    for (; turns != 0; --turns) simt::pause(1);
  }
};

// halloc.A1 turned around: chunks are subtracted before their bits are cleared.
struct subtracts_first : slow_steps {
  static constexpr bool clears_first = false;
};

// Blocks are as long as they were asked for, whatever their joined bits say: here, one chunk.
struct ignores_lengths : no_faults {
  static u32 chunks_at(u64, u32 starts) { return starts; }
};

template <class Faults>
using mutant = creation::halloc<few_slabs, Faults>;

/// Faults after which a lane that hangs is stopped.
constexpr u64 few_steps = 2'000'000;

/// Blocks of all kinds in a few slabs, which change their kind all the time.
template <class Faults>
bool survives_changes() {
  halloc_pool<mutant<Faults>> const pool{3};
  halloc_churn const body{.rounds = 10, .held_max = 2, .sizes = {.least = 16, .doublings = 7, .odd = true}, .seed = 1};
  auto const report = churned(pool, {2, 3}, body);
  return report.broken == 0 && report.served != 0 && pool.is_quiet(0);
}

/// All lanes have seen one head full, and replace it.
struct replace_what_was_seen {
  template <class Table>
  void operator()(Table table, u32 entry, u32 seen) const {
    halloc_parts::slab_supply<Table>::replace(table, entry, seen);
  }
};

template <class Faults>
bool replaces_a_head_once() {
  halloc_pool<mutant<Faults>> const pool{16};
  auto const blocks = allocate(pool, {1, 1}, 3072);
  auto const table = pool.allocator().table();
  u32 entry = 15;
  while (halloc_parts::head_of(*table.row_words(entry)) == 0) entry += halloc_parts::sizes;
  u64 const before = pool.allocator().work().replacements;
  launch({4, 2}, replace_what_was_seen{}, table, entry, halloc_parts::head_of(*table.row_words(entry)));
  synchronize();
  return pool.allocator().work().replacements == before + 1 && pool.is_quiet(1) && blocks[0];
}

/// The first thread frees a block of a full slab, and the others ask for one. The block is there
/// afterwards if they did not get it.
struct free_or_ask {
  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap, void* block, void** got) const {
    u32 const me = static_cast<u32>(global_thread_index());
    if (me == 0) heap.destroy(block);
    else got[me] = heap.create(3072);
  }
};

template <class Faults>
bool finds_what_was_freed() {
  halloc_pool<mutant<Faults>> const pool{1};
  auto const blocks = allocate(pool, {5, 1}, 3072);
  device_buffer<void*> const got(3);
  launch({3, 1}, free_or_ask{}, pool.allocator(), blocks[2], got.data());
  synchronize();
  auto const later = allocate(pool, {1, 1}, 3072);
  u32 const served = (got[1] == blocks[2]) + (got[2] == blocks[2]) + (later[0] == blocks[2]);
  return served == 1 && pool.is_quiet(5);
}

TEST(HallocMutants, TheAllocatorItselfSurvives) {
  for_each_schedule(300, [] { EXPECT_TRUE(survives_changes<no_faults>()); });
  for_each_schedule(300, [] { EXPECT_TRUE(finds_what_was_freed<no_faults>()); });
  for_each_schedule(300, [] { EXPECT_TRUE(finds_what_was_freed<slow_steps>()); });
  for_each_schedule(100, [] { EXPECT_TRUE(replaces_a_head_once<no_faults>()); });
}

TEST(HallocMutants, ASlabLockedWithBlocksInItIsNoticed) {
  EXPECT_TRUE(find_failing_schedule(
      100, [] { return survives_changes<locks_what_is_not_empty>(); }, few_steps));
}
TEST(HallocMutants, AFreeSlabTakenWithoutItsLockIsNoticed) {
  EXPECT_TRUE(find_failing_schedule(
      300, [] { return survives_changes<takes_free_slabs_unlocked>(); }, few_steps));
}
TEST(HallocMutants, AHeadReplacedTwiceIsNoticed) {
  EXPECT_TRUE(find_failing_schedule(
      100, [] { return replaces_a_head_once<replaces_any_head>(); }, few_steps));
}
TEST(HallocMutants, ACountLoweredBeforeItsBitsAreClearedIsNoticed) {
  EXPECT_TRUE(find_failing_schedule(
      300, [] { return finds_what_was_freed<subtracts_first>(); }, few_steps));
}
// When the bits are cleared, the slab has another life, and its words mark it as of two kinds.
TEST(HallocMutants, ALateClearIntoARecycledSlabIsNoticed) {
  EXPECT_TRUE(find_failing_schedule(
      100, [] { return survives_changes<subtracts_first>(); }, few_steps));
}
TEST(HallocMutants, ABlockFreedWithoutItsLengthIsNoticed) {
  EXPECT_TRUE(find_failing_schedule(
      5, [] { return survives_changes<ignores_lengths>(); }, few_steps));
}

#endif

}}  // namespace warpheap::test
