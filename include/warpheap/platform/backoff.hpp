// SPDX-License-Identifier: Apache-2.0
// Exponential backoff: each pause is twice as long as the last, up to a limit, so that many waiters
// leave the memory system to the thread that they wait for.
//
// A GPU's pauses end at ticks of a timer that all multiprocessors share (on an H200 those of 1 µs
// at multiples of 2 µs), so waiting threads go on in step. A loop that takes a lock for each look
// may then keep it from another waiting thread for ever: look without the lock, and lock when there
// is something to do.
#pragma once

#include "simt.hpp"

namespace warpheap::inline WARPHEAP_BACKEND {

/// One object per wait loop; call `pause()` once a turn.
class backoff {
 public:
  WARPHEAP_DEVICE explicit backoff(u32 first_nanoseconds = 32, u32 limit_nanoseconds = 1024)
      : next_{first_nanoseconds}, limit_{limit_nanoseconds} {}

  WARPHEAP_DEVICE void pause() {
    simt::pause(next_);
    next_ = 2 * next_ < limit_ ? 2 * next_ : limit_;
  }

 private:
  u32 next_;
  u32 limit_;
};

}  // namespace warpheap::inline WARPHEAP_BACKEND
