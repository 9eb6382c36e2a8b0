// SPDX-License-Identifier: Apache-2.0
// Probabilistic concurrency testing (Burckhardt, Kothari, Musuvathi, Nagarakatte 2010): lanes have
// random priorities, the ready lane of the highest one runs, and at a few random places the running
// lane falls below all others.
//
// A fault that takes d events in a certain order, in a run of n lanes and k steps, is found by at
// least one seed in n * k^(d-1). Nothing preempts a lane for as long as this does: a lane that has
// fallen runs again when all others have ended or wait. Neither d nor k is known before a run, so
// the seed draws how many places there are and how far they lie apart. By seed the places are
// steps, or yield points of the code (WARPHEAP_POINT), where a long preemption tells most.
#pragma once

#include "schedule.hpp"

namespace warpheap::host::detail {

/// The places at which the running lane falls: up to six, by seed steps or yield points.
class fall_places {
 public:
  /// `steps` and `names`: how many of each to expect. Without them the seed draws how far places
  /// lie apart: up to 2^2 to 2^13 steps, or up to 1 to 64 yield points.
  WARPHEAP_NO_TSAN void begin(draws& random, u64 steps = 0, u64 names = 0) {
    bool const known = steps != 0;
    at_names_ = random.below(2) != 0 && (!known || names != 0);
    left_ = 1 + random.below(most);
    if (known) span_ = 1 + 2 * (at_names_ ? names : steps) / (left_ + 1);
    else span_ = at_names_ ? u64{1} << random.below(7) : u64{4} << random.below(12);
    passed_ = 0;
    plan(random);
  }

  /// Whether the running lane falls at this step, which has a name or none.
  WARPHEAP_NO_TSAN bool falls(bool has_name, draws& random) {
    if (has_name != at_names_ || ++passed_ < next_) return false;
    plan(random);
    return true;
  }

 private:
  static constexpr u64 most = 6;

  WARPHEAP_NO_TSAN void plan(draws& random) {
    next_ = left_ == 0 ? ~u64{0} : passed_ + 1 + random.below(span_);
    if (left_ != 0) --left_;
  }

  bool at_names_ = false;
  u64 left_ = 0;
  u64 span_ = 1;
  u64 passed_ = 0;  // steps or yield points so far
  u64 next_ = 0;
};

class priority_schedule final : public schedule {
 public:
  WARPHEAP_NO_TSAN void begin(draws& random) override {
    places_.begin(random);
    steps_alone_ = turns_ = 0;
    compared_ = 0;
    lowest_ = fallen;
  }

  WARPHEAP_NO_TSAN void started(lane& lane, draws& random) override {
    lane.priority = random.next() | high;
    lane.pauses = 0;
  }

  WARPHEAP_NO_TSAN lane* at_point(lane& running, situation const& now) override {
    if (places_.falls(false, now.random)) fall(running, now.random.next() | fallen);
    // A lane that spins without a pause must not keep the others out for ever.
    if (++steps_alone_ > most_steps_alone) fall(running, --lowest_);
    return highest(running, now);
  }

  WARPHEAP_NO_TSAN lane* at_yield_point(lane& running, char const*, situation const& now) override {
    if (!places_.falls(true, now.random)) return &running;
    fall(running, now.random.next() | fallen);
    return highest(running, now);
  }

  WARPHEAP_NO_TSAN lane* next(situation const& now) override {
    steps_alone_ = 0;
    compared_ = now.ready.size() - 1;
    lane* const taken = now.ready.take(highest_position(now.ready));
    // Nor must a warp that spins in collectives, whose lanes go on in turn.
    if (++turns_ % most_turns == 0) taken->priority = --lowest_;
    return taken;
  }

  WARPHEAP_NO_TSAN u64 pause_steps(bool waits_for_a_change, u64 live_lanes) const override {
    return waits_for_a_change ? most_steps_alone : 2 * live_lanes;
  }
  WARPHEAP_NO_TSAN u64 steps_of_all(u64 live_lanes) const override { return 2 * most_steps_alone * (live_lanes + 1); }
  WARPHEAP_NO_TSAN bool waits_for_changes() const override { return true; }

  /// Lanes that wake each other in turn must not keep the others out either: in the end they come
  /// below each lane that they kept out, however low it fell.
  WARPHEAP_NO_TSAN void pausing(lane& paused, draws&) override {
    if (++paused.pauses % pauses_until_fall == 0) paused.priority = --lowest_;
  }

 private:
  static constexpr u32 pauses_until_fall = 64;
  static constexpr u64 most_steps_alone = 1 << 14;
  static constexpr u64 most_turns = 1 << 12;
  static constexpr u64 high = u64{1} << 63;    // a lane that has not fallen
  static constexpr u64 fallen = u64{1} << 62;  // one that has, at one of the places

  WARPHEAP_NO_TSAN void fall(lane& running, u64 priority) {
    running.priority = priority & ~high;
    steps_alone_ = 0;
    compared_ = 0;
  }

  /// The running lane was the highest, so it still is unless a lane became ready or it has fallen.
  WARPHEAP_NO_TSAN lane* highest(lane& running, situation const& now) {
    if (now.ready.size() == compared_) return &running;
    compared_ = now.ready.size();
    u64 const position = highest_position(now.ready);
    return now.ready.at(position)->priority > running.priority ? now.ready.swap(position, &running) : &running;
  }

  WARPHEAP_NO_TSAN static u64 highest_position(lane_ring const& ready) {
    u64 highest = 0;
    for (u64 i = 1; i < ready.size(); ++i)
      if (ready.at(i)->priority > ready.at(highest)->priority) highest = i;
    return highest;
  }

  fall_places places_;
  u64 steps_alone_ = 0;
  u64 turns_ = 0;
  u64 compared_ = 0;  // ready lanes that the running lane was compared with
  u64 lowest_ = fallen;
};

}  // namespace warpheap::host::detail
