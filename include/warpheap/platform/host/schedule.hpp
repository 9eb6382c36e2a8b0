// SPDX-License-Identifier: Apache-2.0
// Which lane runs next in deterministic mode.
//
// A worker asks its schedule at every scheduling point, and whenever the running lane can go no
// further. A schedule answers from what it is told alone, so that a run is a function of its
// settings.
#pragma once

#include "run_queue.hpp"

namespace warpheap::host::detail {

/// What a schedule chooses from.
struct situation {
  lane_ring& ready;  ///< the lanes that can run, the running one not among them
  draws& random;
  u64 step;
  u64 live_lanes;
  /// The word that the running lane is about to access; 0 for a fence or a collective.
  u64 pending = 0;
};

class schedule {
 public:
  schedule() = default;
  schedule(schedule const&) = delete;
  schedule& operator=(schedule const&) = delete;
  virtual ~schedule() = default;

  /// Whether it takes a run of `lanes` lanes. Lanes of others make one step each in turn.
  virtual bool takes(u64 /*lanes*/) { return true; }
  /// Before the lanes of a run start.
  virtual void begin(draws&) {}
  /// A lane exists from now on.
  virtual void started(lane&, draws&) {}
  /// At a scheduling point of `running`: the lane that goes on. If it is another one, it has been
  /// taken out of `ready`, and `running` is there in its place. Null holds `running` back until its
  /// `wake_step`; it pauses if lanes wait for changes.
  virtual lane* at_point(lane& running, situation const& now) = 0;
  /// At a yield point (WARPHEAP_POINT) of `running`. It is no scheduling point to a schedule that
  /// does not care.
  virtual lane* at_yield_point(lane& running, char const*, situation const&) { return &running; }
  /// The running lane cannot go on: takes a lane out of `ready`, which has one.
  virtual lane* next(situation const& now) = 0;

  /// Steps after which a lane that pauses may run again although others can run.
  virtual u64 pause_steps(bool /*waits_for_a_change*/, u64 live_lanes) const { return 2 * live_lanes; }
  /// Steps in which each lane that can run has run several times.
  virtual u64 steps_of_all(u64 live_lanes) const { return 64 * live_lanes + 4096; }
  /// Whether a lane that pauses waits until another lane has changed a word that it looked at since
  /// its last pause, or until no lane can run.
  virtual bool waits_for_changes() const { return false; }
  /// If lanes wait for changes: `paused` pauses.
  virtual void pausing(lane& /*paused*/, draws&) {}
  /// If lanes wait for changes: `by` has read `result`, and has changed the word at `address` from
  /// `before` to `after` if they differ. A collective's result has address 0.
  virtual void observed(lane& /*by*/, u64 /*address*/, u64 /*before*/, u64 /*after*/, u64 /*result*/) {}
  /// If lanes wait for changes and none can run, the one that has waited for longest looks again.
  /// After this many such looks without a change the run counts as hung.
  virtual u32 idle_wakes() const { return 100'000; }
};

/// Each lane makes one step in turn.
class round_robin_schedule final : public schedule {
 public:
  WARPHEAP_NO_TSAN lane* at_point(lane& running, situation const& now) override {
    if (now.ready.empty()) return &running;
    now.ready.push(&running);
    return now.ready.pop();
  }
  WARPHEAP_NO_TSAN lane* next(situation const& now) override { return now.ready.pop(); }
};

/// Every step draws. By seed, lanes change at each step, at one in 4, or at one in 16, and a lane
/// is held back for long at one step in 64, in 1024, or never.
class random_walk_schedule final : public schedule {
 public:
  WARPHEAP_NO_TSAN void begin(draws& random) override {
    constexpr u64 sticky[] = {0, 3, 15};
    constexpr u64 hold_back[] = {63, 1023, ~u64{0}};
    sticky_ = sticky[random.below(3)];
    hold_back_ = hold_back[random.below(3)];
  }

  WARPHEAP_NO_TSAN lane* at_point(lane& running, situation const& now) override {
    u64 const draw = now.random.next();
    if ((draw & hold_back_) == hold_back_) {
      running.wake_step = now.step + now.random.below(16 * now.live_lanes + 1);
      return nullptr;
    }
    if (draw >> 32 & sticky_) return &running;
    u64 const position = now.random.below(now.ready.size() + 1);
    return position < now.ready.size() ? now.ready.swap(position, &running) : &running;
  }

  WARPHEAP_NO_TSAN lane* next(situation const& now) override {
    return now.ready.take(now.random.below(now.ready.size()));
  }

 private:
  u64 sticky_ = 0;           // a lane runs on while a draw has any of these bits
  u64 hold_back_ = ~u64{0};  // a lane is held back when a draw has all of these bits
};

}  // namespace warpheap::host::detail
