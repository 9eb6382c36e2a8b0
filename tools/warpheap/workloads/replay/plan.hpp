// SPDX-License-Identifier: Apache-2.0
// A trace made ready for kernels that make its calls again.
//
// The lanes that called together call together again, as one step of their warp, and a warp makes
// its steps in their order. Warps run at the same time, as in the program. Nothing waits within a
// kernel: where a warp frees a block that another warp made in the same kernel, the kernel is cut
// before that, in the order of the trace, into rounds, one launch each. So
//
//   replay.R1  a block that a step names was made in an earlier round, or by an earlier step of its
//       warp.
//   replay.R2  every call of a round comes, in the trace, before every call of the next round.
//
// replay.R2 keeps what lives at a time as it was: were calls made as early as replay.R1 alone
// allows, all mallocs of a kernel whose blocks go from warp to warp would come before all of its
// frees.
#pragma once

#include <vector>

#include "warpheap/adaptor/trace/calls.hpp"

namespace warpheap::tool {

/// A lane's call. Blocks are named by the places of their addresses in an array.
struct replay_call {
  u64 bytes = 0;      ///< asked for
  u64 old_bytes = 0;  ///< of the block that free or realloc names, as they were asked for
  u32 made = 0;       ///< the block that it makes
  u32 named = 0;      ///< the block that free or realloc names
  call_kind kind = call_kind::none;
  u8 log2_alignment = 0;
  bool refused = false;  ///< in the program
};

/// Lanes that call together: lane i of the warp has the call of its rank in the mask.
struct replay_step {
  u32 first_call = 0;
  u32 mask = 0;
};

struct replay_warp {
  u32 first_step = 0;
  u32 steps = 0;
};

/// One launch. Warp w of thread block b is warps[first_warp + b * warps_a_block + w]; a thread
/// block of the program that makes no call in this round has none here.
struct replay_round {
  u64 first_warp = 0;
  u32 thread_blocks = 0;
  u32 warps_a_block = 0;
  bool after_reset = false;  ///< everything is freed before it
};

struct replay_plan {
  std::vector<replay_call> calls = {};
  std::vector<replay_step> steps = {};
  std::vector<replay_warp> warps = {};
  std::vector<replay_round> rounds = {};
  u32 blocks = 0;   ///< that are made
  u32 kernels = 0;  ///< of the program
};

/// The most records of a trace that can be replayed: places in the plan have 32 bits.
inline constexpr u64 most_replayed_records = 0xffff'0000;

/// `trace` has no fault. Throws std::invalid_argument if it has more records than can be replayed.
replay_plan plan_of(call_trace const& trace);

}  // namespace warpheap::tool
