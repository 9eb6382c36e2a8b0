// A counting semaphore whose units may be promised before they exist: the gate between lanes that want blocks and lanes
// that make them by the batch.
//
// A lane that finds too few units and nobody making any is told to make a batch; the lanes that come after it count on
// that batch and sleep. So a burst makes as many batches as it needs, all at once, and no more. The paper keeps count
// C, expected E and reserved R. Only C and E - R are ever read, so two fields do:
//
//    63                      36 35                                   0
//   |  outlook = E - R, signed |            available = C             |
//
//   C  units there now
//   E  units promised: by batches in the making, and by promise()
//   R  units that sleepers wait for
//
//   B1  R <= C + E, that is available + outlook >= 0: every sleeper has units coming. Only withdraw and try_wait may
//       break it; then sleepers decide again, and one of them makes the missing batch.
//   B2  a caller told make_batch has raised E by batch - n, and settles it exactly once: signal(batch - n, batch - n)
//       or withdraw(n, batch). It owns n of its batch.
//   B3  at rest (no sleeper, no batch in the making, no promise) outlook = 0 and available is what was signalled less
//       what was taken.
//   B4  the fields do not overflow: at most 2^36 - 1 units, and resident threads * batch < 2^29 (R and E are largest
//       when half of a batch is asked for: a quarter of that product each).
//
// Progress: signal and promise are wait-free; try_wait and withdraw are lock-free; wait sleeps only on a batch in the
// making (B1), so a maker must come back whatever happens to its batch.
// Cost: one load and one compare-and-swap when units are there; one atomic to signal.
// Source: Gelado and Garland 2019, section 3.3. Differs: a lane decides on its own reservation as covered, units taken
// and reservation dropped in one step; a failed batch wakes every sleeper; two fields in place of three.
#pragma once

#include "../platform/assert.hpp"
#include "../platform/backoff.hpp"
#include "../platform/simt.hpp"

namespace warpheap {

/// What wait() tells its caller.
enum class wait_result {
  acquired,   ///< n units are ours
  make_batch  ///< make a batch, keep n of it, and settle: signal(batch - n, batch - n), or withdraw(n, batch)
};

/// The decisions of bulk_semaphore: pure functions of the word that was seen.
namespace bulk_semaphore_state {

inline constexpr u32 available_bits = 36;
inline constexpr u64 max_available = (u64{1} << available_bits) - 1;

WARPHEAP_HOST_DEVICE constexpr u64 available(u64 word) { return word & max_available; }
WARPHEAP_HOST_DEVICE constexpr i64 outlook(u64 word) { return static_cast<i64>(word) >> available_bits; }

/// What to add to a word to raise its fields; modulo 2^64, so that amounts may be negative while fields do not wrap.
WARPHEAP_HOST_DEVICE constexpr u64 change(i64 available, i64 outlook) {
  return static_cast<u64>(available) + (static_cast<u64>(outlook) << available_bits);
}

/// What a lane in wait() does about the word it saw.
enum class step { take, make, sleep, keep_sleeping };

struct decision {
  step what;
  u64 next;  ///< the word to put in place of the one seen; the same for keep_sleeping
};

/// A lane wants `n` units, with batches of `batch`; `reserved` says that its n units are part of R already.
WARPHEAP_HOST_DEVICE constexpr decision next_of_wait(u64 seen, u32 n, u32 batch, bool reserved) {
  i64 const mine = reserved ? n : 0;
  auto const there = static_cast<i64>(available(seen));
  // Ours first: units that are there end our sleep even if others' are not covered.
  if (reserved && there >= n) return {step::take, seen + change(-i64{n}, mine)};
  // B1 with us among the sleepers fails: a batch is missing. (outlook + mine is E less the others' R.)
  if (there + outlook(seen) + mine < n) return {step::make, seen + change(0, i64{batch} - n + mine)};
  if (there >= n) return {step::take, seen + change(-i64{n}, 0)};
  if (!reserved) return {step::sleep, seen + change(0, -i64{n})};
  return {step::keep_sleeping, seen};
}

/// A batch failed: its promise is withdrawn, and n units are taken if they are there.
WARPHEAP_HOST_DEVICE constexpr decision next_of_withdraw(u64 seen, u32 n, u32 batch) {
  auto const left = seen + change(0, i64{n} - batch);
  if (available(seen) >= n) return {step::take, left - n};
  return {step::make, left};
}

/// Whether a word can be what a semaphore holds while no lane is inside a call and no batch or promise is open (B3).
WARPHEAP_HOST_DEVICE constexpr bool check_at_rest(u64 word) { return outlook(word) == 0; }

}  // namespace bulk_semaphore_state

inline namespace WARPHEAP_BACKEND {

/// The semaphore over a word of global memory that someone else owns. A zeroed word has no units.
class bulk_semaphore {
 public:
  WARPHEAP_DEVICE explicit bulk_semaphore(u64& word) : word_{word} {}

  /// Takes `n` units, or is told to make a batch of `batch`. Sleeps while a batch in the making covers the request.
  ///
  /// n       units, 1 <= n <= batch: more would make the outlook of a fresh batch negative
  /// returns acquired: n units are ours; make_batch: see B2
  /// thread  any lane alone. Lanes of a warp may sleep on one another, so callers hold no lock and lead to no
  ///         collective that a maker needs
  WARPHEAP_DEVICE wait_result wait(u32 n, u32 batch) {
    namespace state = bulk_semaphore_state;
    WARPHEAP_ASSERT(n >= 1 && n <= batch, "bulk_semaphore: wait for none or for more than a batch");
    bool reserved = false;
    backoff nap;
    for (u64 seen = look();; seen = look_again(nap)) {
      auto const decided = state::next_of_wait(seen, n, batch, reserved);
      if (decided.what == state::step::keep_sleeping) continue;
      // acquire: the units' contents; pairs with the release in signal(). It also makes visible what a try_wait that
      // took these units from us promised elsewhere before; pairs with the release in try_wait().
      if (!word_.compare_exchange(seen, decided.next, order::acquire, order::relaxed)) continue;
      if (decided.what == state::step::take) return wait_result::acquired;
      if (decided.what == state::step::make) return wait_result::make_batch;
      reserved = true;  // B1: counted in R before we sleep
    }
  }

  /// Adds `n` units and settles `promised` of the promise: (batch - n, batch - n) after a batch of which n were kept,
  /// (k, 0) to release k units, (0, 1) when a promise(1) came to nothing.
  WARPHEAP_DEVICE void signal(u32 n, u32 promised) {
    namespace state = bulk_semaphore_state;
    // release: the batch's contents happen before any lane that takes these units; pairs with the acquire in wait(),
    // try_wait() and withdraw(). acquire: whoever looked by available_newest() before did so after what we do next; pairs
    // with the release there.
    auto const old = word_.fetch_add(state::change(n, -i64{promised}), order::acq_rel);
    WARPHEAP_ASSERT(state::available(old) + n <= state::max_available, "bulk_semaphore: more than 2^36 - 1 units");
    static_cast<void>(old);
  }

  /// The caller's batch failed: takes its promise back, which lets the sleepers decide again, and takes `n` units if
  /// some came in the meantime.
  ///
  /// returns whether n units are ours
  WARPHEAP_DEVICE bool withdraw(u32 n, u32 batch) {
    namespace state = bulk_semaphore_state;
    backoff nap;
    for (u64 seen = look();; seen = look_again(nap)) {
      auto const decided = state::next_of_withdraw(seen, n, batch);
      // acquire: as in wait(). relaxed on the side of the sleepers: they learn from the outlook alone.
      if (word_.compare_exchange(seen, decided.next, order::acquire, order::relaxed)) {
        return decided.what == state::step::take;
      }
    }
  }

  /// Takes `n` units if they are there, even those that sleepers wait for: those decide again.
  WARPHEAP_DEVICE bool try_wait(u32 n) {
    namespace state = bulk_semaphore_state;
    backoff nap;
    for (u64 seen = look(); state::available(seen) >= n; seen = look_again(nap)) {
      // acquire: as in wait(). release: a promise made elsewhere before the units go is seen by whoever misses them
      // here; pairs with the acquire in wait().
      if (word_.compare_exchange(seen, seen - n, order::acq_rel, order::relaxed)) return true;
    }
    return false;
  }

  /// Raises what is expected by `units` that the caller will settle by signal(_, units).
  WARPHEAP_DEVICE void promise(u32 units) {
    // relaxed: sleepers need the number alone; what orders a promise before a try_wait elsewhere is that one's release.
    word_.fetch_add(bulk_semaphore_state::change(0, units), order::relaxed);
  }

  /// Units there now, by a read-modify-write: who signals later knows what the caller did before.
  WARPHEAP_DEVICE u64 available_newest() const {
    // acquire: what was signalled; pairs with the release in signal(). release: pairs with the acquire there.
    return bulk_semaphore_state::available(word_.fetch_add(0, order::acq_rel));
  }

  /// Units there now: a hint.
  WARPHEAP_DEVICE u64 available() const { return bulk_semaphore_state::available(look()); }

 private:
  // relaxed: a hint; the compare-exchange checks it.
  WARPHEAP_DEVICE u64 look() const { return word_.load(order::relaxed); }

  /// After a nap: for a sleeper, and for one who lost the exchange. Of a crowd at one word, only the first to come with what
  /// is there now wins; those who come back at once are in the way of those who would.
  WARPHEAP_DEVICE u64 look_again(backoff& nap) const {
    nap.pause();
    return look();
  }

  atomic_ref<u64> word_;
};

}  // namespace WARPHEAP_BACKEND

}  // namespace warpheap
