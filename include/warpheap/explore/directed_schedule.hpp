// SPDX-License-Identifier: Apache-2.0
// What the schedules of explorations share: lanes by number, a default choice, and fairness.
//
// At a scheduling point the default is that the running lane goes on; where it cannot, the next
// lane by number. So a schedule is described by the decisions at which another lane was chosen, and
// a list of those replays it. A choice of another lane while the running one could go on is a
// preemption.
//
// A search must not follow lanes that wake each other in turn for ever while a third lane could
// run. So a lane that pauses gives way to all lanes that could have run since its last pause and
// did not (Musuvathi and Qadeer, "Fair stateless model checking", 2008). A lane that looks again
// and again at the same words, and changes nothing, counts as one that pauses; one that goes on for
// very long as one that pauses without waiting for a change.
//
//   schedule.F1  `gives_way_[t]` has u if t may not run while u can. Only a pause of t adds lanes,
//       and a step of u removes u.
#pragma once

#include <vector>

#include "../platform/simt.hpp"
#include "../util/bits.hpp"
#include "../util/random.hpp"
#include "deviation.hpp"

namespace warpheap::explore {

using host::detail::lane;
using host::detail::situation;

/// Thrown in a kernel to end a schedule that leads nowhere new.
struct schedule_ended_early {};

class directed_schedule : public host::detail::schedule {
 public:
  static constexpr u32 most_lanes = 64;

  /// Its lists grow early: the program's memory then lies at the same addresses in most schedules.
  directed_schedule() {
    deviations_.reserve(1024);
    paused_.reserve(most_lanes);
  }

  /// Before the next execution of the explored body, which may launch several kernels.
  virtual void restart() {
    decisions_ = 0;
    names_ = 0;
    deviations_.clear();
    memory_ = 0;
  }

  u32 decisions() const { return decisions_; }
  /// Yield points that lanes have passed.
  u32 names() const { return names_; }
  std::vector<deviation> const& deviations() const { return deviations_; }

  void begin(host::detail::draws&) override {
    lanes_ = 0;
    last_ = 0;
    paused_.clear();
    for (auto& lanes : gives_way_) lanes = 0;
    for (auto& lanes : could_run_) lanes = 0;
    for (auto& lanes : ran_) lanes = 0;
    for (auto& each : looks_) each = {};
    steps_alone_ = 0;
    memory_ = mix(memory_);
  }

  void started(lane& lane, host::detail::draws&) override {
    if (lane.number >= most_lanes)
      throw backend_error{"at most 64 lanes of a launch are explored; `unexplored` is for others"};
    lane.observed = mix(lane.number + 1);
    memory_ ^= mix(lane.observed);
    all_[lane.number] = &lane;
    lanes_ = static_cast<u32>(lane.number) + 1;
  }

  lane* at_point(lane& running, situation const& now) override {
    if (spins(running, now.ready.empty())) return nullptr;
    pending_ = now.pending;
    return decide(running, now);
  }
  lane* at_yield_point(lane& running, char const* name, situation const& now) override {
    ++names_;
    if (!prefers_yield_points()) return &running;
    named_ = name;
    lane* const to = decide(running, now);
    named_ = nullptr;
    return to;
  }

  lane* next(situation const& now) override {
    u64 const enabled = lanes_in(now.ready), allowed = fair_part(enabled);
    u32 const chosen = chosen_of(next_by_number(allowed), allowed, enabled, false);
    u64 position = 0;
    while (now.ready.at(position)->number != chosen) ++position;
    return now.ready.remove(position);
  }

  void pausing(lane& paused, host::detail::draws&) override {
    note(paused, 2);
    std::erase(paused_, &paused);
    paused_.push_back(&paused);
    u32 const me = static_cast<u32>(paused.number);
    gives_way_[me] |= could_run_[me] & ~ran_[me] & ~(u64{1} << me);
    could_run_[me] = ran_[me] = 0;
    looks_[me] = {};
    steps_alone_ = 0;
  }

  bool waits_for_changes() const override { return true; }
  u64 pause_steps(bool waits_for_a_change, u64) const override { return waits_for_a_change ? u64{1} << 40 : 1; }
  u32 idle_wakes() const override { return 10'000; }

  void observed(lane& by, u64 address, u64 before, u64 after, u64 result) override {
    note(by, 3 + result);
    if (address != 0) note_look(by, before != after);
    if (before == after) return;
    memory_ ^= mix(mix(address) + before) ^ mix(mix(address) + after);
    // A lane that has looked there since its last pause need not wait for another change.
    for (u32 i = 0; i < lanes_; ++i)
      if (all_[i] != &by && all_[i]->watched.has(address)) all_[i]->watched.any = true;
  }

 protected:
  /// The lane that runs, one of `allowed`. `preempts` says that any other than `usual` would
  /// preempt the running lane.
  virtual u32 choose(u32 usual, u64 allowed, u64 state, bool preempts) = 0;

  /// Whether yield points are decisions too.
  virtual bool prefers_yield_points() const = 0;

  /// The name of the point where the decision is made; null if it has none.
  char const* named() const { return named_; }

  /// The word that the running lane is about to access; 0 if it is none.
  u64 pending() const { return pending_; }

 private:
  static constexpr u32 most_looks_again = 16;
  static constexpr u32 most_steps_alone = 1 << 15;  // more than random_priorities allows

  struct looks {
    u32 words;  // since the lane's last pause
    u32 again;  // at these words, without a change by the lane
  };

  void note_look(lane const& by, bool changed) {
    auto& known = looks_[by.number];
    bool const is_new = by.watched.count != known.words;
    known = {by.watched.count, changed || is_new ? 0 : known.again + 1};
  }

  bool spins(lane& running, bool is_alone) {
    if (++steps_alone_ > most_steps_alone && !is_alone) return running.watched.any = true;
    return looks_[running.number].again >= most_looks_again;
  }

  /// A lane has done what `what` stands for. Its every step is noted, so that no two states on its
  /// way are the same.
  void note(lane& by, u64 what) {
    memory_ ^= mix(by.observed);
    by.observed = mix(by.observed + 0x9e37'79b9'7f4a'7c15ull * what);
    memory_ ^= mix(by.observed);
  }

  lane* decide(lane& running, situation const& now) {
    note(running, 1);
    u64 const me = u64{1} << running.number;
    u64 const enabled = lanes_in(now.ready) | me, allowed = fair_part(enabled);
    bool const goes_on = (allowed & me) != 0;
    u32 const usual = goes_on ? static_cast<u32>(running.number) : next_by_number(allowed);
    u32 const chosen = chosen_of(usual, allowed, enabled, goes_on);
    if (chosen == running.number) return &running;
    u64 position = 0;
    while (now.ready.at(position)->number != chosen) ++position;
    return now.ready.swap(position, &running);
  }

  u32 chosen_of(u32 usual, u64 allowed, u64 enabled, bool preempts) {
    u32 const decision = decisions_++;
    u64 const state = mix(state_of(enabled) + usual * 2 + preempts);
    u32 const chosen = lanes_ == 1 ? usual : choose(usual, allowed, state, preempts);
    if (chosen != usual) deviations_.push_back({decision, chosen});
    if (chosen != last_) steps_alone_ = 0;
    for (u32 i = 0; i < lanes_; ++i) {
      could_run_[i] |= enabled;
      ran_[i] |= u64{1} << chosen;
      gives_way_[i] &= ~(u64{1} << chosen);
    }
    last_ = chosen;
    return chosen;
  }

  /// A hash of all that the rest of the schedule depends on: words and lanes, fairness, and in
  /// which order lanes that wait will look again.
  u64 state_of(u64 enabled) const {
    u64 state = mix(memory_ + enabled);
    u64 live = 0;
    for (u32 i = 0; i < lanes_; ++i) live |= u64{all_[i]->state != host::detail::lane_state::exited} << i;
    for (u64 left = live; left; left &= left - 1) {
      u32 const i = static_cast<u32>(__builtin_ctzll(left));
      state = mix(state + (gives_way_[i] & live) * 3 + (could_run_[i] & ~ran_[i] & live) * 5 + (ran_[i] & live) * 7 +
                  all_[i]->watched.any);
    }
    for (lane const* each : paused_)
      if (each->state == host::detail::lane_state::paused) state = mix(state + each->number + 1);
    return state;
  }

  /// schedule.F1: `enabled` without the lanes that give way to one of them.
  u64 fair_part(u64 enabled) const {
    u64 fair = 0;
    for (u32 i = 0; i < lanes_; ++i)
      if (enabled >> i & 1 && !(gives_way_[i] & enabled)) fair |= u64{1} << i;
    return fair ? fair : enabled;
  }

  u32 next_by_number(u64 lanes) const {
    u64 const later = lanes & ~low_mask(last_ + 1);
    return static_cast<u32>(__builtin_ctzll(later ? later : lanes));
  }

  static u64 lanes_in(host::detail::lane_ring const& ready) {
    u64 lanes = 0;
    for (u64 i = 0; i < ready.size(); ++i) lanes |= u64{1} << ready.at(i)->number;
    return lanes;
  }

  u32 decisions_ = 0;
  u32 names_ = 0;
  std::vector<deviation> deviations_;
  u32 lanes_ = 0;
  u32 last_ = 0;
  char const* named_ = nullptr;
  u64 pending_ = 0;
  lane* all_[most_lanes];
  u64 gives_way_[most_lanes];  // schedule.F1
  u64 could_run_[most_lanes];  // since the lane's last pause
  u64 ran_[most_lanes];        // since the lane's last pause
  looks looks_[most_lanes];
  u32 steps_alone_ = 0;              // of the lane that runs
  std::vector<lane const*> paused_;  // in the order of their last pauses
  // A hash of the words that lanes have changed and of what every lane has read, which together
  // make the state.
  u64 memory_ = 0;
};

/// Follows a list of deviations as far as it can.
class replayed_schedule : public directed_schedule {
 public:
  /// `prefers_yield_points` as the schedule whose deviations these are.
  replayed_schedule(std::vector<deviation> wanted, bool prefers_yield_points)
      : wanted_{static_cast<std::vector<deviation>&&>(wanted)}, prefers_yield_points_{prefers_yield_points} {}

 private:
  bool prefers_yield_points() const override { return prefers_yield_points_; }
  u32 choose(u32 usual, u64 allowed, u64, bool) override {
    u32 const decision = decisions() - 1;
    for (auto const& each : wanted_)
      if (each.decision == decision && allowed >> each.lane & 1) return each.lane;
    return usual;
  }

  std::vector<deviation> wanted_;
  bool prefers_yield_points_;
};

}  // namespace warpheap::explore
