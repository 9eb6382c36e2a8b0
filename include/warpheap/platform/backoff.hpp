// Waiting that grows: each step pauses twice as long as the last, up to a limit, so that a crowd of waiters leaves the
// memory system to the thread they wait for.
#pragma once

#include "simt.hpp"

namespace warpheap::inline WARPHEAP_BACKEND {

/// Exponential backoff. One object per wait loop; call `pause()` once a turn.
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
