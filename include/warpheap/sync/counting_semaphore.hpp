// SPDX-License-Identifier: Apache-2.0
// Dijkstra's counting semaphore, and the variant whose pool can grow: the yardstick of the bulk
// semaphore, and all that is needed where the number of units is fixed.
//
// When units can be made, a lane that finds too few takes what there is, marks the semaphore as
// growing and makes a batch; all others sleep until it is done. So batches are made one after the
// other, however many lanes wait: the bulk semaphore avoids that.
//
//   S  one signed 64-bit word; zeroed has no units
//   counting.C1  S = units there - lanes that are growing the pool. The lane that lowers S to -1
//       takes the S units that it saw, and gives the 1 back when it settles.
//   counting.C2  S < 0: some lane is growing the pool. It runs, and settles exactly once. Only
//       while S < 0 does wait_or_grow sleep.
//   counting.C3  at rest S is what was signalled less what was taken.
//
// Units that are released while S = -1 make it 0 or more, and one more lane may start to grow: too
// many batches by one for each such release, and no unit lost (counting.C1).
//
// Progress: signal and grown are wait-free; try_wait is lock-free. wait sleeps until others signal:
// it waits in vain for units that only a lane which has not started could release, and a large
// request may lose to small ones for long. wait_or_grow sleeps on a lane that is growing the pool,
// which must come back whatever happens to its batch.
// Cost: one load and one compare-and-swap when units are there; one atomic to signal.
// Source: Gelado and Garland 2019, section 3.2. Differs: wait_or_grow returns what is missing, in
// place of what was taken. grown adds one more than it makes; in the paper's example that one is
// the unit that the maker keeps.
#pragma once

#include "../platform/assert.hpp"
#include "../platform/backoff.hpp"
#include "../platform/simt.hpp"

namespace warpheap {

/// The decisions of counting_semaphore: pure functions of the value that was seen.
namespace counting_semaphore_state {

/// What a waiting lane does about the value it saw.
enum class step { take, grow, sleep };

struct decision {
  step what;
  i64 next;     ///< the value to put in place of the one seen; the same for sleep
  u32 missing;  ///< units that are not ours yet
};

/// A lane wants `n` units of a pool that cannot grow.
WARPHEAP_HOST_DEVICE constexpr decision next_of_wait(i64 seen, u32 n) {
  if (seen >= n) return {step::take, seen - n, 0};
  return {step::sleep, seen, n};
}

/// A lane wants `n` units, and will make what is missing if no other lane is doing so.
WARPHEAP_HOST_DEVICE constexpr decision next_of_wait_or_grow(i64 seen, u32 n) {
  if (seen >= n) return {step::take, seen - n, 0};
  if (seen >= 0) return {step::grow, -1, n - static_cast<u32>(seen)};
  return {step::sleep, seen, n};
}

}  // namespace counting_semaphore_state

inline namespace WARPHEAP_BACKEND {

/// The semaphore over a word of global memory that someone else owns.
class counting_semaphore {
 public:
  WARPHEAP_DEVICE explicit counting_semaphore(u64& word) : word_{word} {}

  /// Takes `n` units; sleeps until they are there.
  ///
  /// thread  any lane alone. Lanes of a warp may sleep on one another, so callers hold nothing that
  ///         a signaller needs
  WARPHEAP_DEVICE void wait(u32 n) const {
    namespace state = counting_semaphore_state;
    backoff nap;
    for (i64 seen = look();;) {
      auto const decided = state::next_of_wait(seen, n);
      if (commit(seen, decided)) return;
      if (decided.what == state::step::sleep) seen = look_again(nap);
      else nap.after_race();
    }
  }

  /// Takes `n` units, or what there is of them and the duty to grow the pool. Sleeps while another
  /// lane grows it.
  ///
  /// returns 0: n units are ours. k > 0: n - k are ours, and the caller makes a batch of at least
  ///         k, or fails to. It settles exactly once: grown(batch - k), or grown(n - k) to give
  ///         back what it took.
  WARPHEAP_DEVICE u32 wait_or_grow(u32 n) const {
    namespace state = counting_semaphore_state;
    WARPHEAP_ASSERT(n >= 1, "counting_semaphore: wait for none");
    backoff nap;
    for (i64 seen = look();;) {
      auto const decided = state::next_of_wait_or_grow(seen, n);
      if (commit(seen, decided)) return decided.missing;
      if (decided.what == state::step::sleep) seen = look_again(nap);
      else nap.after_race();
    }
  }

  /// Takes `n` units if they are there.
  WARPHEAP_DEVICE bool try_wait(u32 n) const {
    namespace state = counting_semaphore_state;
    for (i64 seen = look(); seen >= n;)
      if (commit(seen, state::next_of_wait(seen, n))) return true;
    return false;
  }

  /// Adds `n` units.
  WARPHEAP_DEVICE void signal(u32 n) const { add(n); }

  /// Adds `n` units, and ends the caller's growing of the pool.
  WARPHEAP_DEVICE void grown(u32 n) const { add(i64{n} + 1); }

  /// S: a hint.
  WARPHEAP_DEVICE i64 value() const { return look(); }

 private:
  // relaxed: a hint; the compare-exchange checks it.
  WARPHEAP_DEVICE i64 look() const { return static_cast<i64>(word_.load(order::relaxed)); }

  WARPHEAP_DEVICE i64 look_again(backoff& nap) const {
    nap.while_working();
    return look();
  }

  /// Commits a decision; false if it is to sleep, or the word has changed, to what `seen` is then.
  WARPHEAP_DEVICE bool commit(i64& seen, counting_semaphore_state::decision const& decided) const {
    if (decided.what == counting_semaphore_state::step::sleep) return false;
    u64 expected = static_cast<u64>(seen);
    // acquire: the units' contents; pairs with the release in add().
    bool const done = word_.compare_exchange(expected, static_cast<u64>(decided.next), order::acquire, order::relaxed);
    seen = static_cast<i64>(expected);
    return done;
  }

  WARPHEAP_DEVICE void add(i64 n) const {
    // release: the units' contents happen before any lane that takes them; pairs with the acquire
    // in commit().
    word_.fetch_add(static_cast<u64>(n), order::release);
  }

  atomic_ref<u64> word_;
};

}  // namespace WARPHEAP_BACKEND

}  // namespace warpheap
