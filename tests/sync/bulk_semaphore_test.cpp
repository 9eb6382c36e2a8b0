// SPDX-License-Identifier: Apache-2.0
// The semaphore between real lanes: as many batches as needed, no unit lost, no sleeper left
// behind, contents seen.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>
#include <warpheap/platform/device_buffer.hpp>
#include <warpheap/sync/bulk_semaphore.hpp>
#include <warpheap/util/random.hpp>

#include "semaphore_fixture.hpp"
#include "support/schedules.hpp"

namespace {

using namespace warpheap;
using test::count;
using test::for_each_schedule;
using test::take_batch;
using test::tally;
using test::trade_batches;
namespace state = bulk_semaphore_state;

/// Every lane takes one unit and keeps it; makers write to `contents` before they signal.
template <class Semaphore>
struct take_one {
  WARPHEAP_DEVICE void operator()(u64* word, u32 batch, u32* contents, tally* total) const {
    Semaphore semaphore{*word};
    if (semaphore.wait(1, batch) == wait_result::make_batch) {
      atomic_ref<u32>{*contents}.store(1, order::relaxed);
      semaphore.signal(batch - 1, batch - 1);
      count(total->made, 1);
    } else if (atomic_ref<u32>{*contents}.load(order::relaxed) == 0) {
      count(total->blind, 1);
    }
    count(total->acquired, 1);
  }
};

/// A semaphore on which a lane that wants one unit waits together with the lanes that are active
/// there.
template <class Semaphore>
struct by_converged_lanes : Semaphore {
  using Semaphore::Semaphore;

  WARPHEAP_DEVICE wait_result wait(u32 n, u32 batch) {
    return n == 1 ? this->wait_converged(batch) : Semaphore::wait(n, batch);
  }
};

/// Waits by additions.
template <class Semaphore>
struct by_additions : Semaphore {
  using Semaphore::Semaphore;

  WARPHEAP_DEVICE wait_result wait(u32 n, u32 batch) {
    if (n != 1) return Semaphore::wait(n, batch);
    return this->wait_for_some(1, batch).units == 1 ? wait_result::acquired : wait_result::make_batch;
  }
};

template <class Semaphore>
void expect_no_batch_too_many() {
  for (u32 const batch : {1u, 7u, 32u, 512u}) {
    for_each_schedule(50, [&] {
      device_buffer<u64> word(1);
      device_buffer<u32> contents(1);
      device_buffer<tally> total(1);
      launch({2, 50}, take_one<Semaphore>{}, word.data(), batch, contents.data(), total.data());
      synchronize();
      EXPECT_EQ(total[0].acquired, 100u);
      EXPECT_EQ(total[0].made, (100 + batch - 1) / batch);
      EXPECT_EQ(word[0], u64{total[0].made} * batch - 100);
    });
  }
}

TEST(BulkSemaphore, MakesAsManyBatchesAsNeededAndNoMore) {
  expect_no_batch_too_many<bulk_semaphore>();
  expect_no_batch_too_many<by_converged_lanes<bulk_semaphore>>();
  expect_no_batch_too_many<by_additions<bulk_semaphore>>();
}

/// Every lane takes a unit several times, and keeps it or gives it back. Batches take a while.
template <class Semaphore>
struct make_at_once {
  WARPHEAP_DEVICE void operator()(u64* word, u32 batch, u32 rounds, tally* total) const {
    Semaphore semaphore{*word};
    random_sequence random{global_thread_index()};
    for (u32 round = 0; round < rounds; ++round) {
      if (semaphore.wait(1, batch) == wait_result::make_batch) {
        atomic_ref<u32>{total->at_once}.fetch_max(count(total->making, 1) + 1, order::relaxed);
        for (u32 turns = round == 0 ? 40 : random.below(4); turns != 0; --turns) simt::pause(100);
        count(total->making, ~0u);
        semaphore.signal(batch - 1, batch - 1);
      }
      if (random.below(2) == 0) semaphore.signal(1, 0);
    }
  }
};

/// The most batches that lanes made at once, of which each asks for one unit at a time.
template <class Semaphore>
u32 most_batches_at_once(launch_shape shape, u32 batch) {
  device_buffer<u64> word(1);
  device_buffer<tally> total(1);
  launch(shape, make_at_once<Semaphore>{}, word.data(), batch, 4u, total.data());
  synchronize();
  return total[0].at_once;
}

template <class Semaphore>
void expect_no_more_batches_at_once_than_needed() {
  for (launch_shape const shape : {launch_shape{1, 1}, {7, 1}, {1, 33}, {2, 40}})
    for (u32 const batch : {1u, 4u, 7u, 32u}) {
      u64 const needed = div_ceil(u64{shape.blocks} * shape.threads, batch);
      u32 most = 0;
      for_each_schedule(24, [&] {
        u32 const seen = most_batches_at_once<Semaphore>(shape, batch);
        EXPECT_LE(seen, needed) << batch << " units a batch";
        most = std::max(most, seen);
      });
      if (!test::on_gpu) EXPECT_EQ(most, needed) << "no schedule had all of them at once";
    }
}

// The bound of Gelado and Garland 2019, section 5.1: the requests of a moment over the batch size.
TEST(BulkSemaphore, MakesNoMoreBatchesAtOnceThanTheLanesThatAskNeed) {
  expect_no_more_batches_at_once_than_needed<bulk_semaphore>();
  expect_no_more_batches_at_once_than_needed<by_converged_lanes<bulk_semaphore>>();
  expect_no_more_batches_at_once_than_needed<by_additions<bulk_semaphore>>();
}

/// Whether no lane got units of a batch without seeing what its maker wrote before.
template <class Semaphore>
bool shows_contents() {
  device_buffer<u64> word(1);
  device_buffer<u32> contents(1);
  device_buffer<tally> total(1);
  launch({2, 3}, take_one<Semaphore>{}, word.data(), 8u, contents.data(), total.data());
  synchronize();
  return total[0].acquired == 6 && total[0].blind == 0;
}

TEST(BulkSemaphore, WhatAMakerWroteHappensBeforeItsUnitsAreTaken) {
  for_each_schedule(200, [] { EXPECT_TRUE(shows_contents<bulk_semaphore>()); });
  for_each_schedule(200, [] { EXPECT_TRUE(shows_contents<by_converged_lanes<bulk_semaphore>>()); });
  for_each_schedule(200, [] { EXPECT_TRUE(shows_contents<by_additions<bulk_semaphore>>()); });
}

/// Makes a batch of which n units are ours, while any is left. False if none is.
template <class Semaphore>
WARPHEAP_DEVICE bool make_batch(Semaphore& semaphore, u32 n, u32 batch, u32* supply, tally* total) {
  if (!take_batch(*supply)) return semaphore.withdraw(n, batch);
  count(total->made, 1);
  semaphore.signal(batch - n, batch - n);
  return true;
}

/// Waits for n units, or makes a batch for them while any is left.
struct acquire {
  template <class Semaphore>
  WARPHEAP_DEVICE bool operator()(Semaphore& semaphore, u32 n, u32 batch, u32* supply, tally* total) const {
    return semaphore.wait(n, batch) == wait_result::acquired || make_batch(semaphore, n, batch, supply, total);
  }
};

/// Whether units are conserved and the promises settled after lanes have traded with `supply`
/// batches left.
template <class Semaphore>
bool conserves_units(u32 supply) {
  auto const seen = trade_batches<Semaphore, acquire>(supply);
  return seen.adds_up(supply) && state::check_at_rest(seen.word) &&
         state::available(seen.word) + seen.done.held == u64{seen.done.made} * 8;
}

// bulk.B3
TEST(BulkSemaphore, ConservesUnitsWhileBatchesSucceedAndFail) {
  for (u32 const supply : {0u, 1u, 5u, 1000u}) {
    for_each_schedule(100, [&] { EXPECT_TRUE(conserves_units<bulk_semaphore>(supply)) << supply << " batches"; });
    for_each_schedule(
        100, [&] { EXPECT_TRUE(conserves_units<by_converged_lanes<bulk_semaphore>>(supply)) << supply << " batches"; });
    for_each_schedule(
        100, [&] { EXPECT_TRUE(conserves_units<by_additions<bulk_semaphore>>(supply)) << supply << " batches"; });
  }
}

/// Lanes that want several units each and take what they get, until they have all or a batch fails.
/// They give back or keep what they have; `supply` batches can be made.
template <class Semaphore>
struct take_in_parts {
  WARPHEAP_DEVICE void operator()(u64* word, u32 batch, u32 rounds, u32* supply, tally* total) const {
    Semaphore semaphore{*word};
    random_sequence random{global_thread_index()};
    for (u32 round = 0; round < rounds; ++round) {
      u32 const wanted = 1 + random.below(batch);
      u32 const have = take(semaphore, wanted, batch, supply, total);
      count(have == wanted ? total->acquired : total->refused, 1);
      if (have != 0 && random.below(2) == 0) semaphore.signal(have, 0);
      else count(total->held, have);
    }
  }

 private:
  WARPHEAP_DEVICE static u32 take(Semaphore& semaphore, u32 wanted, u32 batch, u32* supply, tally* total) {
    for (u32 have = 0;;) {
      u32 const missing = wanted - have;
      u32 const units = semaphore.wait_for_some(missing, batch).units;
      if (units > missing) count(total->blind, 1);
      have += units;
      if (have == wanted) return have;
      if (units != 0) continue;
      return make_batch(semaphore, missing, batch, supply, total) ? wanted : have;
    }
  }
};

/// Whether units are conserved and the promises settled after lanes took units in parts, with
/// `supply` batches of 8 left.
template <class Semaphore>
bool conserves_parts(u32 supply) {
  constexpr u32 batch = 8;
  device_buffer<u64> word(1);
  device_buffer<u32> left(std::vector<u32>{supply});
  device_buffer<tally> total(1);
  launch({2, 12}, take_in_parts<Semaphore>{}, word.data(), batch, 6u, left.data(), total.data());
  synchronize();
  auto const done = total[0];
  return state::check_at_rest(word[0]) && done.made + left[0] == supply && done.acquired + done.refused == 144 &&
         (supply < 1000 || done.refused == 0) && done.blind == 0 &&
         state::available(word[0]) + done.held == u64{done.made} * batch;
}

TEST(BulkSemaphore, ConservesUnitsThatAreTakenInParts) {
  for (u32 const supply : {0u, 1u, 5u, 1000u})
    for_each_schedule(200, [&] { EXPECT_TRUE(conserves_parts<bulk_semaphore>(supply)) << supply << " batches"; });
}

/// What lanes of see_none know of a semaphore: how often units reappeared, and that number when a
/// lane saw none.
struct none_seen {
  u64 epoch;
  u64 exhausted_at;
};

/// Three lanes and two units. The first wants both and takes what it gets; the second takes one and
/// gives it back; the third notes whether at one instant there were none for it. A lane that makes
/// units appear raises the epoch.
template <class Semaphore>
struct see_none {
  WARPHEAP_DEVICE void operator()(u64* word, none_seen* seen) const {
    Semaphore semaphore{*word};
    atomic_ref<u64> const epoch{seen->epoch};
    u64 const me = global_thread_index();
    if (me == 0) {
      some_units const got = semaphore.wait_for_some(2, 2);
      if (got.units_reappeared) epoch.fetch_add(1, order::acq_rel);
      if (got.units == 0) semaphore.withdraw(2, 2);
    } else if (me == 1) {
      if (!semaphore.try_wait(1)) return;
      semaphore.signal(1, 0);
      epoch.fetch_add(1, order::acq_rel);
    } else {
      for (u32 round = 0; round < 3; ++round) {
        u64 const before = epoch.fetch_add(0, order::acq_rel);
        bool const none = semaphore.available_newest() == 0;
        if (none && epoch.fetch_add(0, order::acq_rel) == before)
          atomic_ref<u64>{seen->exhausted_at}.store(before + 1, order::relaxed);
      }
    }
  }
};

/// Whether there are no units in the end if a lane saw none and has not been told of any since.
template <class Semaphore>
bool tells_of_units() {
  device_buffer<u64> word(std::vector<u64>{2});
  device_buffer<none_seen> seen(1);
  launch({3, 1}, see_none<Semaphore>{}, word.data(), seen.data());
  synchronize();
  bool const believed = seen[0].exhausted_at == seen[0].epoch + 1;
  return state::check_at_rest(word[0]) && !(believed && state::available(word[0]) != 0);
}

TEST(BulkSemaphore, WhoMadeOthersMissUnitsIsToldSo) {
  for_each_schedule(2000, [] { EXPECT_TRUE(tells_of_units<bulk_semaphore>()); });
}

/// Every lane asks once; no batch can be made.
template <class Semaphore>
struct find_nothing {
  WARPHEAP_DEVICE void operator()(u64* word, u32 batch, tally* total) const {
    Semaphore semaphore{*word};
    if (semaphore.wait(1, batch) == wait_result::make_batch && !semaphore.withdraw(1, batch)) count(total->refused, 1);
  }
};

template <class Semaphore>
void expect_all_are_refused() {
  for_each_schedule(100, [] {
    device_buffer<u64> word(1);
    device_buffer<tally> total(1);
    launch({2, 50}, find_nothing<Semaphore>{}, word.data(), 16u, total.data());
    synchronize();
    EXPECT_EQ(total[0].refused, 100u);
    EXPECT_EQ(word[0], 0u);
  });
}

TEST(BulkSemaphore, AFailedBatchWakesEverySleeper) {
  expect_all_are_refused<bulk_semaphore>();
  expect_all_are_refused<by_converged_lanes<bulk_semaphore>>();
  expect_all_are_refused<by_additions<bulk_semaphore>>();
}

/// As many lanes as there are units, and lanes that are told to make a batch that cannot be made:
/// none of them may leave without a unit.
template <class Semaphore>
struct share_what_is_there {
  WARPHEAP_DEVICE void operator()(u64* word, u32 rounds, tally* total) const {
    Semaphore semaphore{*word};
    for (u32 round = 0; round < rounds; ++round) {
      bool const ours = semaphore.wait(1, 4) == wait_result::acquired || semaphore.withdraw(1, 4);
      count(ours ? total->acquired : total->refused, 1);
      if (ours) semaphore.signal(1, 0);
    }
  }
};

/// Whether no lane is refused a unit that no lane has, and none is lost.
template <class Semaphore>
bool shares_all() {
  constexpr launch_shape shape{2, 5};
  device_buffer<u64> word(std::vector<u64>{10});
  device_buffer<tally> total(1);
  launch(shape, share_what_is_there<Semaphore>{}, word.data(), 8u, total.data());
  synchronize();
  return total[0].acquired == 80 && total[0].refused == 0 && word[0] == 10;
}

TEST(BulkSemaphore, NobodyIsRefusedAUnitThatNobodyHas) {
  for_each_schedule(200, [] { EXPECT_TRUE(shares_all<bulk_semaphore>()); });
  for_each_schedule(400, [] { EXPECT_TRUE(shares_all<by_converged_lanes<bulk_semaphore>>()); });
  for_each_schedule(400, [] { EXPECT_TRUE(shares_all<by_additions<bulk_semaphore>>()); });
}

/// The first thread promises a unit before any lane asks and delivers it, or takes the promise
/// back; the others wait.
struct wait_for_promise {
  WARPHEAP_DEVICE void operator()(u64* word, bool keeps, u32* promised, tally* total) const {
    bulk_semaphore semaphore{*word};
    atomic_ref<u32> const go{*promised};
    if (global_thread_index() == 0) {
      semaphore.promise(1);
      // release: the promise comes before the requests; pairs with the acquire below.
      go.store(1, order::release);
      simt::pause(100);
      semaphore.signal(keeps ? 1 : 0, 1);
      return;
    }
    // acquire: pairs with the release above.
    while (go.load(order::acquire) == 0) simt::pause(20);
    if (semaphore.wait(1, 1) == wait_result::acquired) {
      count(total->acquired, 1);
    } else {
      count(total->made, 1);
      semaphore.signal(0, 0);
    }
  }
};

TEST(BulkSemaphore, APromiseIsWaitedForAndABrokenOneIsNot) {
  for (bool const keeps : {true, false}) {
    for_each_schedule(50, [&] {
      device_buffer<u64> word(1);
      device_buffer<u32> promised(1);
      device_buffer<tally> total(1);
      launch({2, 2}, wait_for_promise{}, word.data(), keeps, promised.data(), total.data());
      synchronize();
      // One unit was promised: one waiter counts on it. The promise does not cover the two others,
      // which make their own.
      EXPECT_EQ(total[0].acquired, keeps ? 1u : 0u);
      EXPECT_EQ(total[0].made, keeps ? 2u : 3u);
      EXPECT_EQ(word[0], 0u);
    });
  }
}

struct add_units {
  WARPHEAP_DEVICE void operator()(bulk_semaphore& semaphore, u32 units) const { semaphore.signal(units, 0); }
};

TEST(BulkSemaphore, WhatWasWrittenBeforeUnitsWereAddedIsThereForALaneThatTries) {
  for (launch_shape const shape : {launch_shape{2, 1}, {4, 1}, {2, 3}})
    for_each_schedule(60,
                      [&] { EXPECT_TRUE((test::shows_contents_to_lanes_that_try<bulk_semaphore, add_units>(shape))); });
}

// A lane that loses the exchange to another one tries again.
TEST(BulkSemaphore, ATryFailsOnlyIfUnitsAreMissing) {
  for (launch_shape const shape : {launch_shape{2, 1}, {3, 2}, {1, 33}})
    for_each_schedule(20, [&] { EXPECT_TRUE(test::serves_all_that_try<bulk_semaphore>(shape, 3)); });
}

/// What two lanes saw that each left a note for the other, and then met at a semaphore.
struct meeting {
  u32 note_of_looker, note_of_signaller;
  u64 available;  ///< to the looker
  bool seen[2];   ///< whether the looker saw the signaller's note, and the other way round
};

/// One lane looks how many units there are, another one adds a unit.
struct look_beside_a_signal {
  WARPHEAP_DEVICE void operator()(u64* word, meeting* met) const {
    bulk_semaphore semaphore{*word};
    atomic_ref<u32> const looker{met->note_of_looker}, signaller{met->note_of_signaller};
    if (simt::block_index() == 0) {
      looker.store(1, order::relaxed);
      met->available = semaphore.available_newest();
      met->seen[0] = signaller.load(order::relaxed) != 0;
    } else {
      signaller.store(1, order::relaxed);
      semaphore.signal(1, 0);
      met->seen[1] = looker.load(order::relaxed) != 0;
    }
  }
};

TEST(BulkSemaphore, ALookThatSeesAUnitIsAfterItsSignalAndAnyOtherIsBefore) {
  for_each_schedule(200, [] {
    device_buffer<u64> word(1);
    device_buffer<meeting> met(1);
    launch({2, 1}, look_beside_a_signal{}, word.data(), met.data());
    synchronize();
    EXPECT_TRUE(met[0].seen[met[0].available == 0 ? 1 : 0]);
  });
}

#if !defined(__CUDACC__)

using test::find_failing_schedule;

/// A semaphore that expects no units of batches in the making: each lane that finds none makes a
/// batch.
struct semaphore_without_expectations : bulk_semaphore {
  using bulk_semaphore::bulk_semaphore;
  wait_result wait(u32 n, u32) { return try_wait(n) ? wait_result::acquired : wait_result::make_batch; }
  void signal(u32 n, u32) { bulk_semaphore::signal(n, 0); }
};

TEST(BulkSemaphore, BatchesThatNobodyExpectsAreCaught) {
  EXPECT_TRUE(find_failing_schedule(24, [] {
                return most_batches_at_once<semaphore_without_expectations>({2, 40}, 32) <= 3;
              }).has_value());
}

/// A failed batch that is not withdrawn.
struct semaphore_without_withdraw : bulk_semaphore {
  using bulk_semaphore::bulk_semaphore;
  bool withdraw(u32, u32) { return false; }
};

/// Sleepers that R does not count, so that makers' units are promised twice.
class semaphore_with_uncounted_sleepers : public bulk_semaphore {
 public:
  explicit semaphore_with_uncounted_sleepers(u64& word) : bulk_semaphore{word}, raw_{word} {}

  wait_result wait(u32 n, u32 batch) {
    for (bool asleep = false;;) {
      auto seen = raw_.load(order::relaxed);
      auto const decided = state::next_of_wait(seen, n, batch, asleep);
      if (decided.what == state::step::sleep || decided.what == state::step::keep_sleeping) {
        asleep = true;
        simt::pause(20);
        continue;
      }
      if (!raw_.compare_exchange(seen, decided.next, order::acquire, order::relaxed)) continue;
      return decided.what == state::step::take ? wait_result::acquired : wait_result::make_batch;
    }
  }

 private:
  atomic_ref<u64> raw_;
};

/// A failed batch that wakes no lane: units are taken if there are any, and the promise stays.
class semaphore_that_forgets_a_promise : public bulk_semaphore {
 public:
  explicit semaphore_that_forgets_a_promise(u64& word) : bulk_semaphore{word} {}
  bool withdraw(u32 n, u32) { return try_wait(n); }
};

/// Units that come while their promise stays open: a sleeper that they do not cover waits for a
/// batch that no lane makes.
class semaphore_that_forgets_sleepers : public bulk_semaphore {
 public:
  explicit semaphore_that_forgets_sleepers(u64& word) : bulk_semaphore{word} {}
  void signal(u32 n, u32) { bulk_semaphore::signal(n, 0); }
};

/// A lane that sleeps first and is counted in R after its nap. The units that it relied on may be
/// taken, or promised to others.
class semaphore_that_reserves_after_sleep : public bulk_semaphore {
 public:
  explicit semaphore_that_reserves_after_sleep(u64& word) : bulk_semaphore{word}, raw_{word} {}

  wait_result wait(u32 n, u32 batch) {
    for (bool asleep = false;; simt::pause(20)) {
      auto seen = raw_.load(order::relaxed);
      auto const decided = state::next_of_wait(seen, n, batch, asleep);
      if (decided.what == state::step::keep_sleeping) continue;
      if (decided.what == state::step::sleep) {
        simt::pause(100);
        raw_.fetch_sub(state::change(0, n), order::relaxed);  // takes n whatever came in between
        // Counted now, and sure of its units: waits for them and does not decide again.
        for (;; simt::pause(20)) {
          seen = raw_.load(order::relaxed);
          if (state::available(seen) < n) continue;
          if (raw_.compare_exchange(seen, seen + state::change(-i64{n}, n), order::acquire, order::relaxed))
            return wait_result::acquired;
        }
      }
      if (!raw_.compare_exchange(seen, decided.next, order::acquire, order::relaxed)) continue;
      return decided.what == state::step::take ? wait_result::acquired : wait_result::make_batch;
    }
  }

 private:
  atomic_ref<u64> raw_;
};

/// Units whose contents may be seen late.
class semaphore_with_relaxed_signal : public bulk_semaphore {
 public:
  explicit semaphore_with_relaxed_signal(u64& word) : bulk_semaphore{word}, raw_{word} {}
  void signal(u32 n, u32 promised) { raw_.fetch_add(state::change(n, -i64{promised}), order::relaxed); }

 private:
  atomic_ref<u64> raw_;
};

/// What is wrong with a mutant of wait_each.
enum class slip {
  none,
  keeps_what_is_beyond,    // what was taken beyond the units there stays taken
  reserves_nothing,        // sleepers that R does not count
  makes_one_too_many,      // a maker more than is missing
  forgets_that_it_sleeps,  // a maker stays counted in R
  relaxed_take,            // contents may be seen late
  no_barrier               // the leader's acquire is its own
};

template <slip Slip>
class sloppy_semaphore : public bulk_semaphore {
 public:
  explicit sloppy_semaphore(u64& word) : bulk_semaphore{word}, raw_{word} {}

  wait_result wait(u32 n, u32 batch) {
    if (n != 1) return bulk_semaphore::wait(n, batch);
    lane_mask mask = simt::active_mask();
    for (bool reserved = false;; reserved = true, simt::pause(20)) {
      auto const group = group_of(mask);
      u32 taken = 0, makers = 0;
      if (group.leads) {
        u64 const seen = raw_.load(order::relaxed);
        if (!reserved) raw_.fetch_add(state::change(0, -reservation(group.size)), order::relaxed);
        else if (state::balance(seen) > 0) taken = take_reserved(group.size);
        else makers = become_makers(seen, group.size, batch);
      }
      taken = broadcast(group, taken);
      makers = broadcast(group, makers);
      if (Slip != slip::no_barrier) simt::sync_warp(mask);
      if (group.rank < taken) return wait_result::acquired;
      if (group.rank < taken + makers) return wait_result::make_batch;
      if (taken + makers != 0) mask &= ~lanes_before(nth_bit(mask, taken + makers));
    }
  }

 private:
  static i64 reservation(u32 lanes) { return Slip == slip::reserves_nothing ? 0 : lanes; }

  u32 take_reserved(u32 size) {
    auto const how = Slip == slip::relaxed_take ? order::relaxed : order::acquire;
    i64 const there = state::balance(raw_.fetch_add(state::change(-i64{size}, reservation(size)), how));
    u32 const taken = static_cast<u32>(std::clamp<i64>(there, 0, size)), rest = size - taken;
    if (Slip != slip::keeps_what_is_beyond) raw_.fetch_add(state::change(rest, -reservation(rest)), order::relaxed);
    return taken;
  }

  u32 become_makers(u64 seen, u32 size, u32 batch) {
    u32 makers = state::makers_among(seen, size, batch);
    if (makers != 0 && makers < size && Slip == slip::makes_one_too_many) ++makers;
    i64 const kept = Slip == slip::forgets_that_it_sleeps ? makers : 0;
    u64 const next = seen + state::change(0, i64{makers} * batch - kept);
    return raw_.compare_exchange(seen, next, order::acquire, order::relaxed) ? makers : 0;
  }

  atomic_ref<u64> raw_;
};

/// What is wrong with a mutant of wait_for_some.
enum class lapse {
  none,
  keeps_what_is_beyond,  // what was taken beyond the units there stays taken
  reserves_nothing,      // sleepers that R does not count
  stays_reserved,        // a lane that takes units stays counted in R
  relaxed_take,          // contents may be seen late
  tells_nothing          // of units that others missed
};

template <lapse Lapse>
class hasty_semaphore : public bulk_semaphore {
 public:
  explicit hasty_semaphore(u64& word) : bulk_semaphore{word}, raw_{word} {}

  some_units wait_for_some(u32 n, u32 batch) {
    some_units got;
    for (bool reserved = false;; reserved = true, simt::pause(20)) {
      u64 seen = raw_.load(order::relaxed);
      auto const decided = state::next_of_wait(seen, n, batch, reserved);
      if (decided.what == state::step::take) {
        take_some(n, reserved, got);
        if (got.units != 0) return got;
        continue;
      }
      if (decided.what == state::step::make &&
          raw_.compare_exchange(seen, decided.next, order::acquire, order::relaxed))
        return got;
      if (!reserved && Lapse != lapse::reserves_nothing) raw_.fetch_add(state::change(0, -i64{n}), order::relaxed);
    }
  }

 private:
  void take_some(u32 n, bool reserved, some_units& got) {
    i64 const back = reserved && Lapse != lapse::stays_reserved ? n : 0;
    auto const how = Lapse == lapse::relaxed_take ? order::relaxed : order::acquire;
    i64 const there = state::balance(raw_.fetch_add(state::change(-i64{n}, back), how));
    got.units = static_cast<u32>(std::clamp<i64>(there, 0, n));
    i64 const rest = Lapse == lapse::keeps_what_is_beyond ? 0 : i64{n} - got.units;
    if (rest == 0) return;
    u64 const old = raw_.fetch_add(state::change(rest, got.units == 0 ? -rest : 0), how);
    if (Lapse != lapse::tells_nothing && state::balance(old) + rest > 0) got.units_reappeared = true;
  }

  atomic_ref<u64> raw_;
};

/// Whether some schedule makes the mutant hang, or lose units or promises.
template <class Semaphore>
bool loses_units(u32 supply) {
  auto const is_sound = [&] {
    auto run = host::current_execution();
    run.step_cap = 200'000;
    host::scoped_execution const use{run};
    return conserves_units<Semaphore>(supply);
  };
  return find_failing_schedule(500, is_sound).has_value();
}

TEST(BulkSemaphore, ADroppedWithdrawIsCaught) { EXPECT_TRUE(loses_units<semaphore_without_withdraw>(1)); }

// bulk.B1
TEST(BulkSemaphore, AnUncountedSleeperIsCaught) { EXPECT_TRUE(loses_units<semaphore_with_uncounted_sleepers>(5)); }

// bulk.B2
TEST(BulkSemaphore, AWithdrawalThatForgetsThePromiseIsCaught) {
  EXPECT_TRUE(loses_units<semaphore_that_forgets_a_promise>(1));
}

TEST(BulkSemaphore, ASignalThatForgetsSleepersIsCaught) {
  EXPECT_TRUE(loses_units<semaphore_that_forgets_sleepers>(5));
}

TEST(BulkSemaphore, AReservationAfterTheSleepIsCaught) {
  EXPECT_TRUE(loses_units<semaphore_that_reserves_after_sleep>(1000));
}

TEST(BulkSemaphore, ASoundSemaphoreIsNot) {
  for (u32 const supply : {1u, 5u, 1000u}) EXPECT_FALSE(loses_units<bulk_semaphore>(supply));
}

template <slip Slip>
bool slips() {
  for (u32 const supply : {1u, 5u, 1000u})
    if (loses_units<sloppy_semaphore<Slip>>(supply)) return true;
  return find_failing_schedule(200, shows_contents<sloppy_semaphore<Slip>>).has_value();
}

TEST(BulkSemaphore, LanesThatKeepMoreThanThereWasAreCaught) { EXPECT_TRUE(slips<slip::keeps_what_is_beyond>()); }

TEST(BulkSemaphore, LanesThatReserveNothingAreCaught) { EXPECT_TRUE(slips<slip::reserves_nothing>()); }

TEST(BulkSemaphore, AMakerThatStaysReservedIsCaught) { EXPECT_TRUE(slips<slip::forgets_that_it_sleeps>()); }

TEST(BulkSemaphore, LanesThatTakeWithoutAcquireAreCaught) { EXPECT_TRUE(slips<slip::relaxed_take>()); }

TEST(BulkSemaphore, ConvergedLanesWithoutABarrierAreCaught) { EXPECT_TRUE(slips<slip::no_barrier>()); }

TEST(BulkSemaphore, LanesThatMakeABatchTooManyAreCaught) {
  auto const makes_few = [] {
    device_buffer<u64> word(1);
    device_buffer<u32> contents(1);
    device_buffer<tally> total(1);
    launch({2, 5}, take_one<sloppy_semaphore<slip::makes_one_too_many>>{}, word.data(), 8u, contents.data(),
           total.data());
    synchronize();
    return total[0].made == 2;
  };
  EXPECT_TRUE(find_failing_schedule(100, makes_few).has_value());
}

TEST(BulkSemaphore, SoundLanesAreNotCaught) { EXPECT_FALSE(slips<slip::none>()); }

template <lapse Lapse>
bool lapses() {
  using mutant = hasty_semaphore<Lapse>;
  for (u32 const supply : {1u, 5u, 1000u}) {
    auto const is_sound = [&] { return conserves_parts<mutant>(supply); };
    if (find_failing_schedule(100, is_sound, 200'000)) return true;
  }
  return find_failing_schedule(200, shows_contents<by_additions<mutant>>) ||
         find_failing_schedule(2000, tells_of_units<mutant>);
}

TEST(BulkSemaphore, AnAdditionThatKeepsMoreThanThereWasIsCaught) { EXPECT_TRUE(lapses<lapse::keeps_what_is_beyond>()); }

TEST(BulkSemaphore, AnArrivalThatReservesNothingIsCaught) { EXPECT_TRUE(lapses<lapse::reserves_nothing>()); }

TEST(BulkSemaphore, ATakerThatStaysReservedIsCaught) { EXPECT_TRUE(lapses<lapse::stays_reserved>()); }

TEST(BulkSemaphore, AnAdditionWithoutAcquireIsCaught) { EXPECT_TRUE(lapses<lapse::relaxed_take>()); }

// bulk.B5
TEST(BulkSemaphore, UnitsThatAppearAgainInSilenceAreCaught) { EXPECT_TRUE(lapses<lapse::tells_nothing>()); }

TEST(BulkSemaphore, SoundAdditionsAreNot) { EXPECT_FALSE(lapses<lapse::none>()); }

TEST(BulkSemaphore, ARelaxedSignalIsCaught) {
  EXPECT_TRUE(find_failing_schedule(200, shows_contents<semaphore_with_relaxed_signal>).has_value());
}

#endif

}  // namespace
