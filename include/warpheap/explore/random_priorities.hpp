// SPDX-License-Identifier: Apache-2.0
// The random priorities of host/priority_schedule.hpp as a directed schedule, whose deviations can
// be replayed and made fewer.
#pragma once

#include "directed_schedule.hpp"

namespace warpheap::explore {

class random_priorities final : public directed_schedule {
 public:
  /// For a body that takes about this many decisions and yield points.
  random_priorities(u64 seed, u64 decisions, u64 names) : random_{seed} {
    places_.begin(random_, decisions + 1, names);
  }

  void started(lane& lane, host::detail::draws& random) override {
    directed_schedule::started(lane, random);
    priorities_[lane.number] = random_.next() | high;
  }

 private:
  static constexpr u64 high = u64{1} << 63;  // a lane that has not fallen
  static constexpr u32 most_steps_alone = 1 << 14;

  bool prefers_yield_points() const override { return true; }

  u32 choose(u32 usual, u64 allowed, u64, bool preempts) override {
    steps_alone_ = preempts ? steps_alone_ + 1 : 0;
    bool const falls = preempts && (places_.falls(named() != nullptr, random_) || steps_alone_ > most_steps_alone);
    if (falls) priorities_[usual] = random_.next() & ~high;
    u32 highest = static_cast<u32>(__builtin_ctzll(allowed));
    for (u64 left = allowed; left; left &= left - 1) {
      u32 const lane = static_cast<u32>(__builtin_ctzll(left));
      if (priorities_[lane] > priorities_[highest]) highest = lane;
    }
    if (highest != usual) steps_alone_ = 0;
    return highest;
  }

  host::detail::draws random_;
  host::detail::fall_places places_;
  u32 steps_alone_ = 0;
  u64 priorities_[most_lanes] = {};
};

}  // namespace warpheap::explore
