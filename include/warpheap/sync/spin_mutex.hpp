// SPDX-License-Identifier: Apache-2.0
// One lane at a time: a mutex over a word of memory that someone else owns, for sections so short
// that waiting costs less than anything cleverer.
//
//   word = 0   unlocked, so zeroed memory is a field of unlocked mutexes
//   word = 1   one lane is inside
//
//   spin.M1  between a lock() or a try_lock() that returned true and the unlock() that follows, the
//       word is 1 and no other lane gets the mutex.
//   spin.M2  what one holder did inside happens before what the next one does inside.
//
// Any lane locks alone, whatever the other lanes of its warp do: independent thread scheduling runs
// the holder while its neighbours pause. That ends where lanes are tied together: a lane that holds
// the mutex enters no collective with a lane that may be waiting for it. Lanes that come together
// and can work together take a collective_mutex instead.
//
// Progress: unlock is wait-free, try_lock too; lock waits for the holder, which runs, and is not
// fair.
// Cost: unlocked, one load and one compare-and-swap; a waiter only loads, and naps between looks.
// All waiters of a device share the 1.3 billion atomics a second of one address. With thousands
// that looked sooner, SRCU's barriers took half as long again on an H200.
#pragma once

#include "../platform/assert.hpp"
#include "../platform/backoff.hpp"
#include "../platform/simt.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

class spin_mutex {
 public:
  WARPHEAP_DEVICE explicit spin_mutex(u32& word) : word_{word} {}

  /// True if the mutex is ours now; false if another lane had it at one instant during the call.
  WARPHEAP_DEVICE bool try_lock() const {
    u32 seen = unlocked;
    // acquire: what the last holder did inside (spin.M2); pairs with the release in unlock().
    return word_.compare_exchange(seen, locked, order::acquire, order::relaxed);
  }

  /// Waits until the mutex is ours. Any lane alone; the caller does not hold it.
  WARPHEAP_DEVICE void lock() const {
    for (backoff nap; is_locked() || !try_lock();) nap.for_long();
  }

  /// Gives the mutex back; the caller holds it.
  WARPHEAP_DEVICE void unlock() const {
    WARPHEAP_ASSERT(is_locked(), "spin_mutex: unlock of a mutex that nobody holds");
    // release: what we did inside (spin.M2); pairs with the acquire in try_lock().
    word_.store(unlocked, order::release);
  }

  /// Whether a lane holds it: a hint, unless the caller holds it.
  WARPHEAP_DEVICE bool is_locked() const {
    // relaxed: a hint; the compare-exchange checks it.
    return word_.load(order::relaxed) != unlocked;
  }

 private:
  static constexpr u32 unlocked = 0;
  static constexpr u32 locked = 1;

  atomic_ref<u32> word_;
};

/// Holds `Mutex` from here to the end of its scope, on every way out.
template <class Mutex>
class scoped_lock {
 public:
  WARPHEAP_DEVICE explicit scoped_lock(Mutex const& mutex) : mutex_{mutex} { mutex_.lock(); }
  WARPHEAP_DEVICE ~scoped_lock() { mutex_.unlock(); }
  scoped_lock(scoped_lock const&) = delete;
  scoped_lock& operator=(scoped_lock const&) = delete;

 private:
  Mutex mutex_;
};

}}  // namespace warpheap::WARPHEAP_BACKEND
