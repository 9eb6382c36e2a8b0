// Broken twins of rw_malloc: a step left out or turned around must be seen by the test that guards it.
#include "rw_malloc_pool.hpp"

namespace warpheap::test {
namespace {

using creation::rw_malloc;

/// Whether lanes that hold a block of `units` units each at most are all served by as many of them, find what they wrote, and
/// leave nothing. Blocks that vary may find no run, but nothing else.
template <class Heap>
bool serves_a_block_a_lane(launch_shape shape, u32 rounds, u32 units, bool varies, u64 seed) {
  u32 const lanes = shape.blocks * shape.threads;
  unit_pool<Heap> const pool{u64{lanes} * units};
  device_buffer<unit_report> const report(1);
  launch(shape, unit_churn{}, pool.allocator(), rounds, units, varies, seed, report.data());
  synchronize();
  auto const seen = report[0];
  return (varies || seen.refused == 0) && seen.broken == 0 && seen.served + seen.refused == lanes * rounds &&
         seen.served != 0 && pool.is_quiet(0) && pool.allocator().statistics().double_frees == 0;
}

/// Whether a crowd that asks for more than there is gets all of it.
template <class Heap>
bool serves_all_there_is(launch_shape shape, u64 blocks, u64 units) {
  unit_pool<Heap> const pool{blocks * units};
  auto const got = ask(pool, shape, std::vector<u64>(u64{shape.blocks} * shape.threads, units));
  std::set<void*> distinct{got.begin(), got.end()};
  distinct.erase(nullptr);
  return distinct.size() == std::min<u64>(blocks, got.size()) && pool.is_quiet(distinct.size());
}

template <class Heap>
bool all_hold() {
#if !defined(__CUDACC__)
  u64 const seed = host::current_execution().seed;
#else
  u64 const seed = 5;
#endif
  // Lanes alone, and blocks so long that a lane looks many times before it has seen all words: much happens behind it.
  return serves_all_there_is<Heap>({2, 12}, 17, 5) && serves_all_there_is<Heap>({1, 33}, 9, 40) &&
         serves_a_block_a_lane<Heap>({2, 7}, 4, 6, false, seed) &&
         serves_a_block_a_lane<Heap>({6, 1}, 6, 160, false, seed) &&
         serves_a_block_a_lane<Heap>({1, 32}, 2, 3, true, seed) &&
         serves_a_block_a_lane<Heap>({3, 5}, 4, 40, true, seed);
}

TEST(RwMalloc, GivesEachUnitToOneLaneAndNullptrOnlyToTheRest) {
  for_each_schedule(150, [] { EXPECT_TRUE(all_hold<rw_malloc<tiny_units>>()); });
}

/// Whether lanes always find room for their blocks of one length, of several words, where there is such a place for each.
template <class Heap>
bool keeps_three_places(u64 seed) {
  return serves_a_block_a_lane<Heap>({3, 1}, 30, 96, false, seed);
}
/// As keeps_three_places(), with more lanes and longer blocks.
template <class Heap>
bool keeps_six_places(u64 seed) {
  return serves_a_block_a_lane<Heap>({6, 1}, 16, 224, false, seed);
}

#if !defined(__CUDACC__)

TEST(RwMalloc, PutsBlocksOfOneLengthSideBySideWhileOthersAreFreed) {
  for_each_schedule(400,
                    [] { EXPECT_TRUE(keeps_three_places<rw_malloc<tiny_units>>(host::current_execution().seed)); });
}

// K2 left out: the lock is open before the bits are there.
struct opens_first : careful_runs {
  WARPHEAP_DEVICE static walk_word publish(atomic_ref<u64> word, u64 taken) {
    u64 const old = word.fetch_and(~walk_word::lock_bit, order::relaxed);
    word.fetch_xor(taken, order::relaxed);
    return walk_word{old};
  }
};

// Every word counts as ours: two lanes set the bits of one word.
struct locks_nothing : careful_runs {
  WARPHEAP_DEVICE static walk_word try_lock(atomic_ref<u64> word) {
    return walk_word{word.fetch_or(walk_word::lock_bit, order::acquire) & ~walk_word::lock_bit};
  }
};

// A refusal without a look at everything.
struct looks_nowhere : careful_runs {
  static constexpr bool searches = false;
};

// A word in somebody's hands counts as full.
struct skips_locked_words : careful_runs {
  static constexpr bool doubts_locked_words = false;
};

// What came free behind the search does not count.
struct forgets_the_epoch : careful_runs {
  WARPHEAP_DEVICE static bool may_refuse(bool saw_none, bool) { return saw_none; }
};

// What is noted of a group stays, although units of it came free.
struct forgets_the_groups : careful_runs {
  WARPHEAP_DEVICE static void disturb(atomic_ref<u64>) {}
};

// What was seen of a group is noted whatever came free since.
struct notes_too_late : careful_runs {
  WARPHEAP_DEVICE static void note(atomic_ref<u64> group, u64, u64 now) { group.store(now, order::relaxed); }
};

// What is noted is read without what came free before it was.
struct reads_notes_carelessly : careful_runs {
  WARPHEAP_DEVICE static group_word read_note(atomic_ref<u64> group) { return group_word{group.load(order::relaxed)}; }
};

// A run that shows because a block before it is being freed serves at its beginning.
struct begins_anywhere : careful_runs {
  static constexpr bool looks_for_ends = false;
};

// The end of a run is marked one unit too far.
struct misplaces_the_end : careful_runs {
  WARPHEAP_HOST_DEVICE static constexpr u64 last_of(u64 unit, u64 units) { return unit + units; }
};

// Parts of one run begin one unit early.
struct overlaps_parts : careful_runs {
  WARPHEAP_HOST_DEVICE static constexpr u64 part_of(u64 unit, u32 before) { return unit + before - (before != 0); }
};

template <class Steps>
std::optional<u64> caught() {
  return find_failing_schedule(800, [] { return all_hold<rw_malloc<tiny_units, Steps>>(); });
}

TEST(RwMallocTwin, ThatOpensAWordBeforeItPublishesIsCaught) { EXPECT_TRUE(caught<opens_first>()); }
TEST(RwMallocTwin, ThatSharesLockedWordsIsCaught) { EXPECT_TRUE(caught<locks_nothing>()); }
TEST(RwMallocTwin, ThatGivesUpAfterItsWalkIsCaught) { EXPECT_TRUE(caught<looks_nowhere>()); }
TEST(RwMallocTwin, ThatCountsALockedWordAsFullIsCaught) { EXPECT_TRUE(caught<skips_locked_words>()); }
TEST(RwMallocTwin, ThatIgnoresWhatCameFreeBehindItIsCaught) { EXPECT_TRUE(caught<forgets_the_epoch>()); }
TEST(RwMallocTwin, ThatForgetsWhatCameFreeInAGroupIsCaught) { EXPECT_TRUE(caught<forgets_the_groups>()); }
TEST(RwMallocTwin, ThatNotesWhatIsNoLongerSoIsCaught) { EXPECT_TRUE(caught<notes_too_late>()); }
TEST(RwMallocTwin, ThatReadsNotesWithoutWhatCameBeforeIsCaught) {
  EXPECT_TRUE(find_failing_schedule(6000, [] {
    return keeps_six_places<rw_malloc<tiny_units, reads_notes_carelessly>>(host::current_execution().seed);
  }));
}
TEST(RwMallocTwin, ThatPlacesBlocksBehindHalfFreedOnesIsCaught) {
  EXPECT_TRUE(find_failing_schedule(
      6000, [] { return keeps_three_places<rw_malloc<tiny_units, begins_anywhere>>(host::current_execution().seed); }));
}
TEST(RwMallocTwin, ThatMisplacesTheEndOfARunIsCaught) { EXPECT_TRUE(caught<misplaces_the_end>()); }
TEST(RwMallocTwin, WhosePartsOverlapIsCaught) { EXPECT_TRUE(caught<overlaps_parts>()); }

#endif

}  // namespace
}  // namespace warpheap::test
