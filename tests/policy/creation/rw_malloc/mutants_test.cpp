// SPDX-License-Identifier: Apache-2.0
// Mutants of rw_malloc: a step left out or turned around must be seen by the test that guards
// it.
#include "pool_fixture.hpp"
#include "support/refusals.hpp"

namespace warpheap::test { namespace {

using creation::rw_malloc;

/// Whether lanes that hold at most a block of `units` units each, in a pool with room for as many,
/// find what they wrote, are served or refused, and leave nothing taken.
template <class Heap>
bool keeps_blocks_apart(launch_shape shape, u32 rounds, u32 units, bool varies, u64 seed) {
  u32 const lanes = shape.blocks * shape.threads;
  unit_pool<Heap> const pool{u64{lanes} * units};
  device_buffer<unit_report> const report(1);
  launch(shape, unit_churn{}, pool.allocator(), rounds, units, varies, seed, report.data());
  synchronize();
  auto const seen = report[0];
  return seen.broken == 0 && seen.served + seen.refused == lanes * rounds && seen.served != 0 && pool.is_quiet(0) &&
         pool.allocator().snapshot().statistics().double_frees == 0;
}

/// Whether no lane is refused while one of `blocks` places for `units` units has no owner, in a
/// pool of which `others` more are taken all the time.
template <class Heap>
bool finds_what_stays_free(u32 blocks, u64 units, launch_shape shape, u32 rounds, u32 others = 0,
                           u64* refused = nullptr) {
  unit_pool<Heap> const pool{(blocks + others) * units};
  auto all = ask(pool, {1, blocks + others}, std::vector<u64>(blocks + others, units));
  if (std::count(all.begin(), all.end(), nullptr) != 0) return false;
  std::sort(all.begin(), all.end());
  std::vector<void*> open(blocks);  // apart from each other, as far as there are others
  for (u32 i = 0; i < blocks; ++i) open[i] = all[u64{i} * (blocks + others) / blocks];
  release(pool, open);
  auto const found = refusals_of(pool.allocator(), shape, addresses_of(open), 16 * units, rounds, schedule_seed());
  if (refused) *refused += found.refused;
  return found.served != 0 && found.unfounded == 0 && pool.is_quiet(others);
}

/// Whether contending threads that ask for more than there is get all of it.
template <class Heap>
bool serves_all_there_is(launch_shape shape, u64 blocks, u64 units) {
  unit_pool<Heap> const pool{blocks * units};
  auto const got = ask(pool, shape, std::vector<u64>(u64{shape.blocks} * shape.threads, units));
  std::set<void*> distinct{got.begin(), got.end()};
  distinct.erase(nullptr);
  return distinct.size() == std::min<u64>(blocks, got.size()) && pool.is_quiet(distinct.size());
}

template <class Heap>
bool all_hold(u64* refused = nullptr) {
  u64 const seed = schedule_seed();
  // Lanes that are alone, and blocks so long that a lane looks many times before it has seen all
  // words: much happens behind it.
  return serves_all_there_is<Heap>({2, 12}, 17, 5) && serves_all_there_is<Heap>({1, 33}, 9, 40) &&
         keeps_blocks_apart<Heap>({2, 7}, 4, 6, false, seed) && keeps_blocks_apart<Heap>({6, 1}, 6, 160, false, seed) &&
         keeps_blocks_apart<Heap>({1, 32}, 2, 3, true, seed) && keeps_blocks_apart<Heap>({3, 5}, 4, 40, true, seed) &&
         finds_what_stays_free<Heap>(3, 6, {5, 1}, 6, 0, refused) &&
         finds_what_stays_free<Heap>(4, 160, {6, 1}, 6, 3, refused) &&
         finds_what_stays_free<Heap>(9, 40, {2, 7}, 4, 5, refused);
}

TEST(RwMalloc, GivesEachUnitToOneLaneAndNullptrOnlyToTheRest) {
  u64 refused = 0;
  for_each_schedule(200, [&] { EXPECT_TRUE(all_hold<rw_malloc<tiny_units>>(&refused)); });
  EXPECT_GT(refused, test::on_gpu ? 0u : 200u);
}
TEST(RwMalloc, GivesEachUnitOfAWideWindowToOneLane) {
  for_each_schedule(100, [&] {
    EXPECT_TRUE(all_hold<rw_malloc<tiny_wide_units<2>>>());
    EXPECT_TRUE(all_hold<rw_malloc<tiny_wide_units<4>>>());
  });
}

/// Whether blocks of one length, of several words, lie at multiples of it, though there is room for
/// no more blocks.
template <class Heap>
bool keeps_four_places(u64 seed) {
  return keeps_blocks_apart<Heap>({2, 2}, 30, 96, false, seed) &&
         keeps_blocks_apart<Heap>({4, 1}, 30, 160, false, seed);
}
/// Whether refusals are true while notes are made and taken back all the time.
template <class Heap>
bool finds_one_of_five_places() {
  return finds_what_stays_free<Heap>(5, 224, {12, 1}, 24);
}

#if !defined(__CUDACC__)

TEST(RwMalloc, PutsBlocksOfOneLengthSideBySideWhileOthersAreFreed) {
  for_each_schedule(400, [] { EXPECT_TRUE(keeps_four_places<rw_malloc<tiny_units>>(schedule_seed())); });
}

TEST(RwMalloc, RefusesNobodyAPlaceOfWhichNotesComeAndGo) {
  for_each_schedule(300, [] { EXPECT_TRUE(finds_one_of_five_places<rw_malloc<tiny_units>>()); });
}

// walk.K2 left out: the lock is open before the bits are there.
struct opens_first : rw_malloc_parts::no_faults {
  WARPHEAP_DEVICE static walk_word publish(atomic_ref<u64> word, u64 taken) {
    u64 const old = word.fetch_and(~walk_word::lock_bit, order::relaxed);
    word.fetch_xor(taken, order::relaxed);
    return walk_word{old};
  }
};

// Every word counts as ours: two lanes set the bits of one word.
struct locks_nothing : rw_malloc_parts::no_faults {
  WARPHEAP_DEVICE static walk_word try_lock(atomic_ref<u64> word) {
    return walk_word{word.fetch_or(walk_word::lock_bit, order::acquire) & ~walk_word::lock_bit};
  }
};

// A refusal without a look at everything.
struct looks_nowhere : rw_malloc_parts::no_faults {
  static constexpr bool searches = false;
};

// A word that another lane has locked counts as full.
struct skips_locked_words : rw_malloc_parts::no_faults {
  static constexpr bool waits_for_locks = false;
};

// The outcome of any pass, however old, answers a search.
struct believes_older_passes : rw_malloc_parts::no_faults {
  template <class Pass>
  WARPHEAP_DEVICE static bool may_share(Pass const& pass, u64, pass_size size = {}) {
    return pass.answers(0, size);
  }
};

// A group's note stays although units of it were freed.
struct forgets_the_groups : rw_malloc_parts::no_faults {
  WARPHEAP_DEVICE static void disturb(atomic_ref<u64>) {}
};

// What was seen of a group is noted although units were freed since.
struct notes_too_late : rw_malloc_parts::no_faults {
  WARPHEAP_DEVICE static void note(atomic_ref<u64> group, u64, u64 now) { group.store(now, order::relaxed); }
};

// Notes are read without acquiring the frees that came before them.
struct reads_notes_carelessly : rw_malloc_parts::no_faults {
  WARPHEAP_DEVICE static rw_malloc_parts::group_word read_note(atomic_ref<u64> group) {
    return {group.load(order::relaxed)};
  }
};

// A run that is visible only because the block before it is being freed is served from its
// beginning.
struct begins_anywhere : rw_malloc_parts::no_faults {
  static constexpr bool looks_for_ends = false;
};

// The end of a run is marked one unit too far.
struct misplaces_the_end : rw_malloc_parts::no_faults {
  WARPHEAP_HOST_DEVICE static constexpr u64 last_of(u64 unit, u64 units) { return unit + units; }
};

// Parts of one run begin one unit early.
struct overlaps_parts : rw_malloc_parts::no_faults {
  WARPHEAP_HOST_DEVICE static constexpr u64 part_of(u64 unit, u32 before) { return unit + before - (before != 0); }
};

template <class Faults>
std::optional<u64> caught() {
  return find_failing_schedule(
      800, [] { return all_hold<rw_malloc<tiny_units, Faults>>(); }, u64{1} << 22);
}

TEST(RwMallocMutant, ThatOpensAWordBeforeItPublishesIsCaught) { EXPECT_TRUE(caught<opens_first>()); }
TEST(RwMallocMutant, ThatSharesLockedWordsIsCaught) { EXPECT_TRUE(caught<locks_nothing>()); }
TEST(RwMallocMutant, OfWideWindowsThatOpensOrSharesWordsIsCaught) {
  EXPECT_TRUE(find_failing_schedule(800, [] { return all_hold<rw_malloc<tiny_wide_units<4>, opens_first>>(); }));
  EXPECT_TRUE(find_failing_schedule(800, [] { return all_hold<rw_malloc<tiny_wide_units<4>, locks_nothing>>(); }));
}
TEST(RwMallocMutant, ThatGivesUpAfterItsWalkIsCaught) { EXPECT_TRUE(caught<looks_nowhere>()); }
TEST(RwMallocMutant, ThatCountsALockedWordAsFullIsCaught) { EXPECT_TRUE(caught<skips_locked_words>()); }
TEST(RwMallocMutant, ThatSharesOlderPassesIsCaught) { EXPECT_TRUE(caught<believes_older_passes>()); }
// rw.G1
TEST(RwMallocMutant, ThatForgetsWhatCameFreeInAGroupIsCaught) { EXPECT_TRUE(caught<forgets_the_groups>()); }
// rw.G2
TEST(RwMallocMutant, ThatNotesWhatIsNoLongerSoIsCaught) { EXPECT_TRUE(caught<notes_too_late>()); }
TEST(RwMallocMutant, ThatReadsNotesWithoutWhatCameBeforeIsCaught) {
  EXPECT_TRUE(find_failing_schedule(
      3000, [] { return finds_one_of_five_places<rw_malloc<tiny_units, reads_notes_carelessly>>(); }));
}
TEST(RwMallocMutant, ThatPlacesBlocksBehindHalfFreedOnesIsCaught) {
  EXPECT_TRUE(find_failing_schedule(
      6000, [] { return keeps_four_places<rw_malloc<tiny_units, begins_anywhere>>(schedule_seed()); }));
}
TEST(RwMallocMutant, ThatMisplacesTheEndOfARunIsCaught) { EXPECT_TRUE(caught<misplaces_the_end>()); }
TEST(RwMallocMutant, WhosePartsOverlapIsCaught) { EXPECT_TRUE(caught<overlaps_parts>()); }

#endif

}}  // namespace warpheap::test
