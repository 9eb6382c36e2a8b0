// SPDX-License-Identifier: Apache-2.0
// A load whose sizes drift while its bytes stay constant. Every thread has a ring of blocks. In
// each step it frees about a quarter of them, the oldest first. Then the threads of a warp ask in
// turn until their warp's budget of bytes is used.
//
// rings.R1  There is a thread for every 2 KiB of the pool, and the budgets together are the level,
//     a share of the pool. Refused calls use up the budget of their step, so all calls of a step
//     are known before the first is made.
// rings.R2  Of its m blocks a thread frees (m + r) / 4 rounded down, with r random below 4. So
//     blocks of one age die in different steps, and their neighbours live on.
// rings.R3  Sizes are drawn from two octaves, which move from 16 to 64 bytes up to 1 to 4 KiB and
//     back in one cycle.
//
// The host plans the steps; nothing here calls an allocator.
#pragma once

#include "call_list.hpp"
#include "slot_load.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

class drifting_rings {
 public:
  static constexpr size_range sizes{16, 4096};

  drifting_rings(u64 pool_bytes, double level, u64 steps_of_cycle, u64 seed)
      : steps_{steps_of_cycle},
        seed_{seed},
        rings_(std::max<u64>(pool_bytes / bytes_of_thread / warp_lanes, 1) * warp_lanes),
        budget_{static_cast<u64>(level * static_cast<double>(pool_bytes)) * warp_lanes / rings_.size()} {}

  /// The blocks that a step frees, which leave their rings.
  std::vector<asked_block> take_leaving(u64 step) {
    std::vector<asked_block> leaving;
    for (u64 thread = 0; thread < rings_.size(); ++thread) {
      auto& ring = rings_[thread];
      u64 const freed = (ring.size() + random(step, ~thread) % 4) / 4;  // rings.R2
      auto const end = ring.begin() + static_cast<std::ptrdiff_t>(freed);
      leaving.insert(leaving.end(), ring.begin(), end);
      ring.erase(ring.begin(), end);
    }
    return leaving;
  }

  /// What the calls of a step ask for, warp by warp.
  std::vector<u64> plan(u64 step) {
    auto const draw = drifting_sizes(sizes, step, steps_);  // rings.R3
    std::vector<u64> wanted;
    callers_.clear();
    for (u64 first = 0; first < rings_.size(); first += warp_lanes) {
      u64 used = 0;
      for (u64 lane = 0; lane < warp_lanes; ++lane) used += bytes_of(rings_[first + lane]);
      for (u64 lane = random(step, first);; ++lane) {
        u64 const bytes = draw.of(static_cast<u32>(random(step, wanted.size()) >> 32));
        used += bytes;  // rings.R1
        if (used > budget_) break;
        wanted.push_back(bytes);
        callers_.push_back(first + lane % warp_lanes);
      }
    }
    return wanted;
  }

  /// Puts the blocks that came for the planned calls into their rings.
  void settle(std::vector<asked_block> const& came) {
    for (size_t i = 0; i < came.size(); ++i)
      if (came[i].block) rings_[callers_[i]].push_back(came[i]);
  }

  std::vector<asked_block> held() const {
    std::vector<asked_block> list;
    for (auto const& ring : rings_) append(list, ring);
    return list;
  }

 private:
  static constexpr u64 bytes_of_thread = 2048;  ///< rings.R1

  u64 random(u64 step, u64 number) const { return mix(mix(seed_ ^ mix(step)) + number); }

  u64 steps_, seed_;
  std::vector<std::vector<asked_block>> rings_;  ///< by thread, the oldest block first
  u64 budget_;                                   ///< of a warp, bytes
  std::vector<u64> callers_;                     ///< by call of the step
};

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
