// A checker is worth what it catches: runs a twin of an algorithm with one line broken under many schedules, and counts
// those in which the check failed. Host backend only: a GPU cannot be made to take the one bad schedule.
#pragma once

#include <warpheap/platform/errors.hpp>
#include <warpheap/platform/simt.hpp>

#if !defined(__CUDACC__)

namespace warpheap::test {

/// Of `seeds` schedules, those in which `is_sound()` returned false or its kernel failed: hung, deadlocked or trapped.
template <class Body>
u32 schedules_that_catch(u32 seeds, Body is_sound) {
  u32 caught = 0;
  for (u64 seed = 1; seed <= seeds; ++seed) {
    host::scoped_execution const run{{.mode = host::execution_mode::deterministic,
                                      .seed = seed,
                                      .step_cap = 100'000,
                                      .stale_reads = true}};
    try {
      if (!is_sound()) ++caught;
    } catch (backend_error const&) {
      ++caught;
    }
  }
  return caught;
}

}  // namespace warpheap::test

#endif
