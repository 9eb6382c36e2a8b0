// SPDX-License-Identifier: Apache-2.0
// The pauses of wait loops. What a loop waits for decides which one fits:
//
//   after_race     for nothing: another thread was faster, and we try again. At once is fastest for
//                  a few and slow for thousands, so we let a random time pass, which grows with the
//                  races that we have lost
//   while_working  for a thread that is about to do something: we spin on the clock at first, and
//                  then nap for random times
//   for_long       for something that takes microseconds, or for others to run: we nap
//
// Naps double up to a limit, so that many waiters leave the memory system to the thread that they
// wait for. A GPU's naps end at ticks of a timer that all multiprocessors share (on an H200 those
// of 1 µs at multiples of 2 µs), so threads that nap after a race go on in step, and one of them
// gets on a tick. A lane that only spins takes turns from the other lanes of its warp, one of which
// it may be waiting for. A loop that takes a lock for each look may keep it from another waiting
// thread for ever: look without the lock, and lock when there is something to do.
#pragma once

#include "simt.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// One object per wait loop; one call a turn. A nap takes up to one and a half of
/// `limit_nanoseconds`, which is at most 2^16.
class backoff {
 public:
  WARPHEAP_DEVICE explicit backoff(u32 first_nanoseconds = 32, u32 limit_nanoseconds = 1024)
      : next_{first_nanoseconds}, limit_{limit_nanoseconds} {}

  WARPHEAP_DEVICE void after_race() {
    if (race_clocks_ < most_race_clocks) race_clocks_ += clocks_a_race;
    simt::spin(scattered_below(race_clocks_));
  }

  WARPHEAP_DEVICE void while_working() {
    if (next_ < most_spin_clocks) simt::spin(next_);
    else simt::pause(next_ / 2 + scattered_below(next_));
    grow();
  }

  WARPHEAP_DEVICE void for_long() {
    simt::pause(next_);
    grow();
  }

 private:
  static constexpr u32 clocks_a_race = 8, most_race_clocks = 8192, most_spin_clocks = 512;

  /// For n up to 2^16.
  WARPHEAP_DEVICE static u32 scattered_below(u32 n) {
    return (static_cast<u32>(simt::clock()) * 0x9e3779b9u >> 16) * n >> 16;
  }
  WARPHEAP_DEVICE void grow() { next_ = 2 * next_ < limit_ ? 2 * next_ : limit_; }

  u32 race_clocks_ = 32;
  u32 next_;  ///< nanoseconds of the next nap, or clocks of the next spin
  u32 limit_;
};

}}  // namespace warpheap::WARPHEAP_BACKEND
