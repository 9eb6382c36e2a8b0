// SPDX-License-Identifier: Apache-2.0
// Records of what runs: a lane, its warp, its thread block, its grid. Written by the one OS thread
// that runs the block.
#pragma once

#include "fiber.hpp"

namespace warpheap::host::detail {

struct thread_block;
struct warp;
struct knowledge;
class block_memory;

/// What a lane does at a scheduling point, or waits in.
enum class operation : u8 {
  load,
  store,
  exchange,
  compare_exchange,
  compare_exchange_failed,
  add,
  min,
  max,
  bit_or,
  bit_and,
  bit_xor,
  fence,
  ballot,
  match_any_u32,
  match_any_u64,
  shuffle,
  reduce_or,
  sync_warp,
  active_mask,
  sync_block,
  pause
};

/// The words that a lane has looked at since its last pause, or in a search for a hang. If another
/// lane changes one of them, the lane may find what it waits for.
struct words_watched {
  static constexpr u32 most = 14;

  u32 count = 0;     // past `most`: any word
  bool any = false;  // looking again may help without a change: an answer was old, or the lane spun
  bool met_warp = false;
  bool met_block = false;
  u64 addresses[most];  // in different words of 8 bytes

  WARPHEAP_NO_TSAN void add(u64 address) {
    u32 const kept = count < most ? count : most;
    for (u32 i = 0; i < kept; ++i)
      if (addresses[i] >> 3 == address >> 3) return;
    if (count < most) addresses[count] = address;
    ++count;
  }
  WARPHEAP_NO_TSAN bool has(u64 address) const {
    if (count > most) return true;
    for (u32 i = 0; i < count; ++i)
      if (addresses[i] >> 3 == address >> 3) return true;
    return false;
  }
  WARPHEAP_NO_TSAN void clear() {
    count = 0;
    any = met_warp = met_block = false;
  }
};

enum class lane_state : u8 { ready, paused, at_collective, at_active_mask, at_sync_block, exited };

struct alignas(64) lane : fiber {
  thread_block* block;
  warp* group;
  u32 serial;  // index in its grid, modulo 2^32
  u32 thread;  // index in its thread block
  u8 id;       // index in its warp
  lane_state state;
  operation waits_in;
  lane_mask mask;    // named by the collective that it waits in
  u32 source;        // shuffle: the lane whose value it wants
  u32 pauses;        // priority_schedule: so far
  u64 value;         // deposited at a collective, then its result
  void const* site;  // where it called its last atomic or active_mask
  u64 depth;         // how deep its stack was there
  u64 wake_step;     // paused: when it may run again, even if others could run
  u64 priority;      // priority_schedule
  u64 number;        // in the order of starts, over all kernels of a run
  u64 observed;      // hash of all that it has read (exploration), or the last (hang.hpp)
  words_watched watched;
  knowledge* knows;  // weak memory: knowledge.hpp, null until it is needed
  u64 heard;         // weak memory: the last step of another lane that can have influenced it
};
// A launch writes each of them: four cache lines, and no more without a measurement.
static_assert(sizeof(lane) == 256 || warp_lanes == 64 || under_asan || under_tsan);

/// A collective in the making.
struct rendezvous {
  lane_mask mask;
  lane_mask arrived;
  operation kind;
  bool sites_differ;
  void const* site;
};

/// The lanes of a warp. A lane is in one collective at most, so a slot for each always suffices.
struct warp {
  thread_block* block;
  lane* lanes;  // lanes[i] is lane i
  u32 index;
  lane_mask existing;  // partial in the last warp of a thread block
  lane_mask exited;
  u32 runnable;              // number of lanes that are ready
  lane_mask at_active_mask;  // lanes parked there
  u32 parked_steps;          // steps of the others since the first of them parked
  u32 open;                  // slots in use are [0, open)
  rendezvous meetings[warp_lanes];

  /// The lanes of `mask` that exist and have not returned.
  WARPHEAP_NO_TSAN lane_mask present(lane_mask mask) const { return mask & existing & ~exited; }
};

/// A kernel: the functor and its arguments, copied bitwise for each lane as on a GPU.
struct grid {
  void (*body)(void const* closure);
  void const* closure;
  launch_shape shape;
  u64 id = 0;  // of the launch, from 1
  u32 next_block = 0;
  u32 finished_blocks = 0;
  u64 start_stamp = 0;  // weak memory: what comes before it is known to all lanes
};

/// A resident thread block and the place that it holds.
struct thread_block {
  grid* of = nullptr;  // null: the place is free
  u32 number = 0;      // of its first lane among all of the run, from 1
  u32 index = 0;
  u32 sm = 0;
  u32 live = 0;
  u32 at_barrier = 0;
  warp* warps = nullptr;
  lane* lanes = nullptr;
  u32 lane_capacity = 0;
  block_memory* shared = nullptr;  // of the place; null until a thread block asks for some
};

}  // namespace warpheap::host::detail
