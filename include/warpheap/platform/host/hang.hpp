// SPDX-License-Identifier: Apache-2.0
// Lanes that wait for what no lane will do.
//
// After `hang_steps` steps for each lane without a change a worker searches: it notes the words
// that its lanes look at. They hang if nothing changes meanwhile and each lane that runs looks at a
// few words again and again, or meets lanes that do. Lanes that only meet, or look at many words,
// work.
//
// host.Q1  what may end a wait is progress: a word changes, a lane starts or returns, the host may
//     change a word (system scope), or time passes (nanoseconds(), parallel mode). Each ends the
//     search, in deterministic mode at its next look.
// host.Q2  parallel mode: while a worker searches it sees each change that its lanes make. All that
//     have lanes search at the same time, and each finds its lanes waiting, twice: the second time
//     it has begun after the last change of any.
#pragma once

#include "collective.hpp"

namespace warpheap::host::detail {

/// Looks for a hang after this number of steps, or of waits in parallel mode.
WARPHEAP_NO_TSAN inline void worker::look_after(u64 steps) {
  look_at_ = steps_and_waits() + steps;
  check_at_step_ = look_at_ < how_.step_cap ? look_at_ : how_.step_cap;
}

/// Steps without progress before a search, and in parallel mode those of a search. Few lanes get
/// more: a loop that counts to a million is no hang.
WARPHEAP_NO_TSAN inline u64 worker::quiet_steps() const {
  constexpr u64 least_lanes = 64;
  // An exploration waits for changes alone, and knows when none can come.
  if (how_.hang_steps == 0 || how_.policy == schedule_policy::directed) return ~u64{0} >> 1;
  u64 const all = how_.hang_steps * (live_lanes_ < least_lanes ? least_lanes : live_lanes_);
  // A step of parallel mode is a turn's atomics or a pause.
  return deterministic_ ? all : all / 16 + 1;
}

/// Past check_at_step_, or now and then.
[[gnu::cold, gnu::noinline]] WARPHEAP_NO_TSAN inline void worker::check_steps() {
  if (statistics_.steps > how_.step_cap) fail(describe_step_cap(how_.step_cap));
  if (steps_and_waits() < look_at_) return;
  u64 const since = statistics_.steps - last_change_;
  if (deterministic_ && since < quiet_steps()) {
    searches_ = false;
    return look_after(quiet_steps() - since);
  }
  if (!searches_) return search_for_hang();
  if (!all_lanes_wait()) {
    note_progress();
    searches_ = false;
  } else if (deterministic_ || work_->all_are_quiet(quiet_since_, told_quiet_)) {
    hangs_ = true;
    leave_for_good(failure::none);
  }
  look_after(quiet_steps());
}

WARPHEAP_NO_TSAN inline void worker::search_for_hang() {
  searches_ = true;
  for (u32 i = 0; i < place_count_; ++i) {
    auto const& block = places_[i];
    for (u32 thread = 0; block.of && thread < block.of->shape.threads; ++thread) block.lanes[thread].watched.clear();
  }
  if (deterministic_) return look_after(schedule_->steps_of_all(live_lanes_));
  told_quiet_ = false;
  quiet_since_ = work_->quiet_since();
  look_after(quiet_steps());
}

/// Parallel mode: there is progress.
[[gnu::cold, gnu::noinline]] WARPHEAP_NO_TSAN inline void worker::end_search() {
  searches_ = false;
  work_->end_quiet();
  look_after(quiet_steps());
}

/// Whether the lanes that ran in the search wait, and nothing shows that they work.
WARPHEAP_NO_TSAN inline bool worker::all_lanes_wait() const {
  for (u32 i = 0; i < place_count_; ++i) {
    auto const& block = places_[i];
    bool block_looks = false, runs = false;
    for (u32 first = 0; block.of && first < block.of->shape.threads; first += warp_lanes) {
      auto const& group = block.warps[first / warp_lanes];
      bool warp_looks = false, meets = false;
      for (lane_mask left = group.existing & ~group.exited; left; left &= left - 1) {
        auto const& each = group.lanes[__builtin_ctzll(left)];
        auto const& watched = each.watched;
        bool const looks = watched.count != 0;
        bool const runs_on = !is_parked(each);
        if (watched.count > words_watched::most) return false;
        if (runs_on && !looks && !watched.met_warp && !watched.met_block) return false;
        warp_looks |= looks;
        meets |= watched.met_warp;
        runs |= runs_on;
      }
      if (meets && !warp_looks) return false;
      block_looks |= warp_looks;
    }
    if (runs && !block_looks) return false;
  }
  return true;
}

}  // namespace warpheap::host::detail
