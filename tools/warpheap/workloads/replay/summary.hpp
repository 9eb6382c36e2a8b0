// SPDX-License-Identifier: Apache-2.0
// What is in a trace, in numbers.
#pragma once

#include <array>

#include "plan.hpp"

namespace warpheap::tool {

/// Calls for sizes from a power of two on to the next.
struct size_octave {
  u64 calls = 0;
  u64 bytes = 0;
};

struct trace_summary {
  std::array<u64, 8> calls_of = {};  ///< by kind
  u64 kernels = 0;
  u64 rounds = 0;
  u64 thread_blocks = 0;  ///< the most of a round
  u64 groups = 0;         ///< of lanes that called together
  u64 calls = 0;
  u64 refused = 0;
  u64 asked_bytes = 0;
  u64 most_live_bytes = 0, most_live_blocks = 0;  ///< at a time, as they were asked for
  u64 left_bytes = 0, left_blocks = 0;            ///< live at the end
  std::array<size_octave, 49> sizes = {};         ///< entry i: from 2^i on
};

/// `plan` is plan_of(trace).
trace_summary summary_of(call_trace const& trace, replay_plan const& plan);

}  // namespace warpheap::tool
