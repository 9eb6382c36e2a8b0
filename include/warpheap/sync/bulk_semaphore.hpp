// SPDX-License-Identifier: Apache-2.0
// A counting semaphore whose units may be promised before they exist: the gate between lanes that
// want blocks and lanes that make them by the batch.
//
// A lane that finds too few units and no batch in the making is elected to make one; the lanes that
// come after it count on that batch and sleep. So a burst makes as many batches as it needs, all at
// once, and no more. The paper keeps count C, expected E and reserved R. Only C and E - R are ever
// read, so two fields do:
//
//    63                      36 35                                   0
//   |  outlook = E - R, signed |        balance = C, signed           |
//
//   C  units there now, less what lanes have taken beyond and are about to give back (bulk.B5)
//   E  units promised: by batches in the making, and by promise()
//   R  units that sleepers wait for
//
//   bulk.B1  R <= C + E, that is balance + outlook >= 0: every sleeper has units coming. withdraw,
//       try_wait and an arrival in wait_each or wait_for_some can break it; then a sleeper that
//       sees this makes the batch.
//   bulk.B2  a caller told make_batch has raised E by batch - n, and settles it exactly once:
//       signal(batch - n, batch - n) or withdraw(n, batch). It owns n of its batch.
//   bulk.B3  at rest (no sleeper, no batch in the making, no promise) outlook = 0 and available is
//       what was signalled less what was taken.
//   bulk.B4  the fields do not overflow: at most 2^35 - 1 units, and resident threads * batch <
//       2^29 (R and E are largest when half of a batch is asked for: a quarter of that product
//       each).
//   bulk.B5  balance is less than the units there only by what callers inside wait_each and
//       wait_for_some want and have not got. Such a unit is promised to a call in progress, so
//       another caller may miss it. A caller of wait_for_some that made others miss units is told
//       so.
//
// Progress: signal and promise are wait-free; try_wait and withdraw are lock-free; the waits sleep
// only on a batch in the making (bulk.B1), so a maker must come back whatever happens to its batch.
// Cost: one load and one atomic when units are there; one atomic to signal. Many lanes at one word
// win a compare-and-swap about once in 0.7 µs (H200), while additions come through at a billion a
// second. So two more waits compare and swap only to become makers: wait_each, where each lane of a
// warp may make a batch, and wait_for_some, where one lane asks for all of them.
// Source: Gelado and Garland 2019, section 3.3. Differs: a lane leaves its own reservation out of R
// when it decides, and takes units and drops the reservation in one step; two fields in place of
// three; wait_each and wait_for_some.
#pragma once

#include "../platform/assert.hpp"
#include "../platform/backoff.hpp"
#include "../platform/simt.hpp"
#include "warp_aggregate.hpp"

namespace warpheap {

/// What wait() tells its caller.
enum class wait_result {
  acquired,  ///< n units are ours
  /// make a batch, keep n of it, and settle: signal(batch - n, batch - n), or withdraw(n, batch)
  make_batch
};

/// What wait_for_some() tells its caller.
struct some_units {
  u32 units = 0;  ///< ours; 0: as wait_result::make_batch
  /// Units that others may have missed (bulk.B5) are there for them now.
  bool units_reappeared = false;
};

/// The decisions of bulk_semaphore: pure functions of the word that was seen.
namespace bulk_semaphore_state {

inline constexpr u32 available_bits = 36;
inline constexpr i64 max_available = (i64{1} << (available_bits - 1)) - 1;

WARPHEAP_HOST_DEVICE constexpr i64 balance(u64 word) {
  return static_cast<i64>(word << (64 - available_bits)) >> (64 - available_bits);
}
WARPHEAP_HOST_DEVICE constexpr u64 available(u64 word) {
  return balance(word) > 0 ? static_cast<u64>(balance(word)) : 0;
}
WARPHEAP_HOST_DEVICE constexpr i64 outlook(u64 word) {
  return static_cast<i64>(word - static_cast<u64>(balance(word))) >> available_bits;
}

/// What to add to a word to raise its fields; modulo 2^64, so that amounts may be negative while
/// fields do not wrap.
WARPHEAP_HOST_DEVICE constexpr u64 change(i64 balance, i64 outlook) {
  return static_cast<u64>(balance) + (static_cast<u64>(outlook) << available_bits);
}

/// How many of `sleepers` lanes have to make a batch (bulk.B1). Each of them has reserved a unit
/// that is not there.
WARPHEAP_HOST_DEVICE constexpr u32 makers_among(u64 seen, u32 sleepers, u32 batch) {
  i64 const uncovered = -(balance(seen) + outlook(seen));
  if (uncovered <= 0) return 0;
  i64 const missing = (uncovered + batch - 1) / batch;
  return missing < sleepers ? static_cast<u32>(missing) : sleepers;
}

/// What a lane in wait() does about the word it saw.
enum class step { take, make, sleep, keep_sleeping };

struct decision {
  step what;
  u64 next;  ///< the word to put in place of the one seen; the same for keep_sleeping
};

/// A lane wants `n` units, with batches of `batch`; `reserved` says that its n units are part of R
/// already.
WARPHEAP_HOST_DEVICE constexpr decision next_of_wait(u64 seen, u32 n, u32 batch, bool reserved) {
  i64 const mine = reserved ? n : 0;
  i64 const there = balance(seen);
  // Ours first: units that are there end our sleep even if the units of other sleepers are not
  // covered.
  if (reserved && there >= n) return {step::take, seen + change(-i64{n}, mine)};
  // bulk.B1 with us among the sleepers fails: a batch is missing. (outlook + mine is E less the
  // others' R.)
  if (there + outlook(seen) + mine < n) return {step::make, seen + change(0, i64{batch} - n + mine)};
  if (there >= n) return {step::take, seen + change(-i64{n}, 0)};
  if (!reserved) return {step::sleep, seen + change(0, -i64{n})};
  return {step::keep_sleeping, seen};
}

/// A batch failed: its promise is withdrawn, and n units are taken if they are there.
WARPHEAP_HOST_DEVICE constexpr decision next_of_withdraw(u64 seen, u32 n, u32 batch) {
  auto const left = seen + change(0, i64{n} - batch);
  if (balance(seen) >= n) return {step::take, left - n};
  return {step::make, left};
}

/// Whether a word can be what a semaphore holds while no lane is inside a call and no batch or
/// promise is open (bulk.B3).
WARPHEAP_HOST_DEVICE constexpr bool check_at_rest(u64 word) { return outlook(word) == 0; }

}  // namespace bulk_semaphore_state

inline namespace WARPHEAP_BACKEND {

/// The semaphore over a word of global memory that someone else owns. A zeroed word has no units.
class bulk_semaphore {
 public:
  WARPHEAP_DEVICE explicit bulk_semaphore(u64& word) : word_{&word} {}

  /// Takes `n` units, or returns make_batch: the caller makes a batch of `batch`. Sleeps while a
  /// batch in the making covers the request.
  ///
  /// n       units, 1 <= n <= batch: more would make the outlook of a fresh batch negative
  /// returns acquired: n units are ours; make_batch: see bulk.B2
  /// thread  any lane alone. Lanes of a warp may sleep on one another, so callers hold no lock and
  ///         enter no collective that a maker needs
  WARPHEAP_DEVICE wait_result wait(u32 n, u32 batch) {
    namespace state = bulk_semaphore_state;
    WARPHEAP_ASSERT(n >= 1 && n <= batch, "bulk_semaphore: wait for none or for more than a batch");
    bool reserved = false;
    backoff nap;
    for (u64 seen = look();;) {
      auto const decided = state::next_of_wait(seen, n, batch, reserved);
      if (decided.what == state::step::keep_sleeping) {
        seen = look_again(nap);
        continue;
      }
      // acquire: the units' contents; pairs with the release in signal(). It also makes visible
      // what a try_wait that took these units from us promised elsewhere before; pairs with the
      // release in try_wait().
      if (!word().compare_exchange(seen, decided.next, order::acquire, order::relaxed)) {
        nap.after_race();
        continue;
      }
      if (decided.what == state::step::take) return wait_result::acquired;
      if (decided.what == state::step::make) return wait_result::make_batch;
      reserved = true;  // bulk.B1: counted in R before we sleep
      seen = look_again(nap);
    }
  }

  /// Takes between 1 and `n` units, or returns make_batch. Decides as wait() does, and adds where
  /// wait() compares and swaps. For a lane that asks for itself and the lanes with it, and asks
  /// again for those that got nothing.
  ///
  /// n       as for wait()
  /// returns fewer than n units only if other callers took some after we had looked. The caller
  ///         treats units_reappeared as a signal of its own: it tells callers that may have seen
  ///         none
  /// thread  as for wait()
  WARPHEAP_DEVICE some_units wait_for_some(u32 n, u32 batch) {
    namespace state = bulk_semaphore_state;
    WARPHEAP_ASSERT(n >= 1 && n <= batch, "bulk_semaphore: wait for none or for more than a batch");
    bool reserved = false;
    some_units got;
    backoff nap;
    for (u64 seen = look();;) {
      auto const decided = state::next_of_wait(seen, n, batch, reserved);
      if (decided.what == state::step::take) {
        take_some(n, reserved, got);
        if (got.units != 0) return got;
        reserved = true;
        seen = look_again(nap);
        continue;
      }
      // acquire: as in wait(). An arrival tries this once, so a lone caller needs no addition
      // before it. Of contending threads one succeeds. The others reserve by an addition, which
      // always succeeds.
      if (decided.what == state::step::make &&
          word().compare_exchange(seen, decided.next, order::acquire, order::relaxed))
        return got;
      // relaxed: sleepers and makers need the number alone.
      if (!reserved) word().fetch_add(state::change(0, -i64{n}), order::relaxed);
      reserved = true;  // bulk.B1, or a sleeper makes what is missing
      seen = decided.what == state::step::make ? look() : look_again(nap);
    }
  }

  /// wait(1, batch) for each lane of `mask`: as many as possible are served by one operation a
  /// turn.
  ///
  /// returns to each lane its own result, as soon as it has one: some may be making a batch while
  /// others sleep
  /// thread  all lanes of `mask` call together, with one semaphore and one `batch`. As for wait():
  ///         no lane holds anything that a maker needs
  WARPHEAP_DEVICE wait_result wait_each(lane_mask mask, u32 batch) {
    WARPHEAP_ASSERT(batch >= 1, "bulk_semaphore: batches of none");
    bool reserved = false;
    backoff nap;
    for (;;) {
      lane_group const group = group_of(mask);
      auto [taken, makers] = group.leads ? turn_of(group.size, batch, reserved) : shares{};
      if (group.size != 1) {
        taken = broadcast(group, taken);
        makers = broadcast(group, makers);
        // Orders memory: the leader's acquire is everybody's.
        simt::sync_warp(mask);
      }
      if (group.rank < taken) return wait_result::acquired;
      if (group.rank < taken + makers) return wait_result::make_batch;
      if (reserved && taken + makers == 0) nap.while_working();
      if (taken + makers != 0) mask &= ~lanes_before(nth_bit(mask, taken + makers));
      reserved = true;
    }
  }

  /// wait_each() with the lanes of the warp that are here with us for the same semaphore; they give
  /// the same `batch`.
  WARPHEAP_DEVICE wait_result wait_converged(u32 batch) {
    return wait_each(simt::match_any(simt::active_mask(), reinterpret_cast<u64>(word_)), batch);
  }

  /// Adds `n` units and settles `promised` of the promise: (batch - n, batch - n) after a batch of
  /// which n were kept, (k, 0) to release k units, (0, 1) when a promise(1) came to nothing.
  WARPHEAP_DEVICE void signal(u32 n, u32 promised) {
    namespace state = bulk_semaphore_state;
    // release: the batch's contents happen before any lane that takes these units; pairs with the
    // acquire in wait(), try_wait() and withdraw(). acquire: what a caller did before an earlier
    // available_newest() happens before what we do next; pairs with the release there.
    auto const old = word().fetch_add(state::change(n, -i64{promised}), order::acq_rel);
    WARPHEAP_ASSERT(state::balance(old) + n <= state::max_available, "bulk_semaphore: more than 2^35 - 1 units");
    static_cast<void>(old);
  }

  /// The caller's batch failed: takes its promise back, which lets the sleepers decide again, and
  /// takes `n` units if some came in the meantime.
  ///
  /// returns whether n units are ours
  WARPHEAP_DEVICE bool withdraw(u32 n, u32 batch) {
    namespace state = bulk_semaphore_state;
    for (u64 seen = look();;) {
      auto const decided = state::next_of_withdraw(seen, n, batch);
      // acquire: as in wait(). relaxed on the side of the sleepers: they learn from the outlook
      // alone.
      if (word().compare_exchange(seen, decided.next, order::acquire, order::relaxed)) {
        return decided.what == state::step::take;
      }
    }
  }

  /// Takes `n` units if they are there, even those that sleepers wait for: those decide again.
  WARPHEAP_DEVICE bool try_wait(u32 n) {
    namespace state = bulk_semaphore_state;
    backoff nap;
    for (u64 seen = look(); state::balance(seen) >= n;) {
      // acquire: as in wait(). release: a promise made elsewhere before the units go is seen by a
      // lane that misses them here; pairs with the acquire in wait().
      if (word().compare_exchange(seen, seen - n, order::acq_rel, order::relaxed)) return true;
      nap.after_race();
    }
    return false;
  }

  /// Raises what is expected by `units` that the caller will settle by signal(_, units).
  WARPHEAP_DEVICE void promise(u32 units) {
    // relaxed: sleepers need the number alone. A try_wait elsewhere orders an earlier promise by
    // its own release.
    word().fetch_add(bulk_semaphore_state::change(0, units), order::relaxed);
  }

  /// Units there now, by a read-modify-write: a lane that signals later knows what the caller did
  /// before.
  WARPHEAP_DEVICE u64 available_newest() const {
    // acquire: what was signalled; pairs with the release in signal(). release: pairs with the
    // acquire there.
    return bulk_semaphore_state::available(word().fetch_add(0, order::acq_rel));
  }

  /// Units there now: a hint.
  WARPHEAP_DEVICE u64 available() const { return bulk_semaphore_state::available(look()); }

 private:
  /// How many lanes of a group got units, and how many make batches.
  struct shares {
    u32 taken = 0, makers = 0;
  };

  /// One turn of wait_each(), by a leader of `lanes` lanes.
  WARPHEAP_DEVICE shares turn_of(u32 lanes, u32 batch, bool reserved) {
    u64 const seen = look();
    if (!reserved) return {take_or_reserve(seen, lanes), 0};
    if (bulk_semaphore_state::balance(seen) > 0) return {take_reserved(lanes), 0};
    return {0, become_makers(seen, lanes, batch)};
  }

  /// Takes a unit for each of `lanes` lanes, or reserves one for each (bulk.B1); returns how many
  /// got theirs. Takes units that sleepers count on only if `seen` is older than their
  /// reservations.
  WARPHEAP_DEVICE u32 take_or_reserve(u64 seen, u32 lanes) {
    namespace state = bulk_semaphore_state;
    i64 const there = state::balance(seen);
    if (there >= lanes && there + state::outlook(seen) >= lanes) return take(lanes, 0);
    // relaxed: sleepers and makers need the number alone.
    word().fetch_add(state::change(0, -i64{lanes}), order::relaxed);
    return 0;
  }

  /// Units for some of `lanes` sleepers; how many got theirs.
  WARPHEAP_DEVICE u32 take_reserved(u32 lanes) { return take(lanes, lanes); }

  /// What of `n` units a balance has.
  WARPHEAP_DEVICE static u32 lesser(i64 there, u32 n) {
    if (there <= 0) return 0;
    return there < n ? static_cast<u32>(there) : n;
  }

  /// `reserved` is how many of the lanes R counts before; afterwards R counts the lanes that got
  /// nothing.
  WARPHEAP_DEVICE u32 take(u32 lanes, u32 reserved) {
    namespace state = bulk_semaphore_state;
    // acquire: as in wait().
    i64 const there = state::balance(word().fetch_add(state::change(-i64{lanes}, reserved), order::acquire));
    u32 const taken = lesser(there, lanes);
    i64 const rest = lanes - taken;
    // relaxed: back to where it was, by bulk.B5 for a moment only.
    if (rest != 0) word().fetch_add(state::change(rest, -rest), order::relaxed);
    return taken;
  }

  /// Up to `n` units for a caller of wait_for_some(). R counts the caller before if `reserved`, and
  /// afterwards if it got none.
  WARPHEAP_DEVICE void take_some(u32 n, bool reserved, some_units& got) {
    namespace state = bulk_semaphore_state;
    // acquire: as in wait().
    i64 const there = state::balance(word().fetch_add(state::change(-i64{n}, reserved ? n : 0), order::acquire));
    got.units = lesser(there, n);
    i64 const rest = n - got.units;
    if (rest == 0) return;
    // bulk.B5: back to what is there. acquire: a caller that saw no units because of us did so
    // before our next step; pairs with the release in available_newest().
    u64 const old = word().fetch_add(state::change(rest, got.units == 0 ? -rest : 0), order::acquire);
    if (state::balance(old) + rest > 0) got.units_reappeared = true;
  }

  /// Turns some of `lanes` sleepers into makers if batches are missing (bulk.B1); returns how many.
  WARPHEAP_DEVICE u32 become_makers(u64 seen, u32 lanes, u32 batch) {
    namespace state = bulk_semaphore_state;
    u32 const makers = state::makers_among(seen, lanes, batch);
    if (makers == 0) return 0;
    // Each maker is one sleeper less, and promises the rest of its batch. acquire: as in wait().
    // Tried once: of contending threads one succeeds, and its batches may cover others.
    bool const ours =
        word().compare_exchange(seen, seen + state::change(0, i64{makers} * batch), order::acquire, order::relaxed);
    return ours ? makers : 0;
  }

  // relaxed: a hint; the compare-exchange checks it.
  WARPHEAP_DEVICE u64 look() const { return word().load(order::relaxed); }

  /// For a sleeper.
  WARPHEAP_DEVICE u64 look_again(backoff& nap) const {
    nap.while_working();
    return look();
  }

  WARPHEAP_DEVICE atomic_ref<u64> word() const { return atomic_ref<u64>{*word_}; }

  u64* word_;
};

}  // namespace WARPHEAP_BACKEND

}  // namespace warpheap
