// SPDX-License-Identifier: Apache-2.0
// The two measures of Pham et al. 2022, and collisions. TAS is the mean number of steps of a
// thread. WAS is the mean over warps of the most steps that one of their lanes took. They are
// counted where a configuration asks for it, in words that the heap keeps.
#pragma once

#include "../../../sync/warp_aggregate.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// Steps of all calls since the counts were reset: TAS is thread_steps / threads, WAS warp_steps /
/// warps.
struct walk_steps_taken {
  u64 threads = 0;       ///< calls
  u64 thread_steps = 0;  ///< words looked at by each, summed
  u64 warps = 0;         ///< sets of lanes that called together
  u64 warp_steps = 0;    ///< the most of each set, summed
  /// Looks after which another thread took what was seen free before it could be claimed: a page,
  /// or CoRW's lock on a word. Of random_walk alone.
  u64 collisions = 0;

  WARPHEAP_HOST_DEVICE double tas() const {
    return threads ? static_cast<double>(thread_steps) / static_cast<double>(threads) : 0;
  }
  WARPHEAP_HOST_DEVICE double was() const {
    return warps ? static_cast<double>(warp_steps) / static_cast<double>(warps) : 0;
  }
};

/// Adds the steps and collisions of the lanes of `active`, all of which call, to the words of a
/// walk_steps_taken.
WARPHEAP_DEVICE inline void count_steps(u64* words, lane_mask active, u32 steps, u32 collisions = 0) {
  u64 sum = 0, most = 0, collided = 0;
  for (lane_mask rest = active; rest; rest &= rest - 1) {
    u64 const theirs = simt::shuffle(active, steps, lowest_bit(rest));
    sum += theirs;
    most = theirs > most ? theirs : most;
    collided += simt::shuffle(active, collisions, lowest_bit(rest));
  }
  auto const group = group_of(active);
  if (!group.leads) return;
  u64 const amounts[] = {group.size, sum, 1, most, collided};
  static_assert(sizeof amounts == sizeof(walk_steps_taken));
  // relaxed: it is not read before the kernel ends.
  for (u32 i = 0; i < sizeof amounts / sizeof *amounts; ++i)
    atomic_ref<u64>{words[i]}.fetch_add(amounts[i], order::relaxed);
}

#if !defined(__CUDACC_RTC__)
/// Reads the counts, and resets them in order on stream `on`.
inline walk_steps_taken read_steps(u64 const* words) {
  walk_steps_taken taken;
  backend::copy_bytes(&taken, words, sizeof taken);
  return taken;
}
inline void reset_steps(u64* words, stream_view on) { backend::fill_bytes(words, 0, sizeof(walk_steps_taken), on); }
#endif

}}  // namespace warpheap::WARPHEAP_BACKEND
