// SPDX-License-Identifier: Apache-2.0
// All schedules of up to a number of preemptions, one after the other.
//
// Depth first, by running the body again from its start (Musuvathi and Qadeer, "Iterative context
// bounding", 2007). A decision has the default and, while preemptions are left, every other lane
// that can run; where the running lane cannot go on, every lane costs nothing. Two partial
// schedules that order only independent steps differently lead to one state, so a state that was
// reached before with as few preemptions is not followed again ("Partial-order reduction for
// context-bounded state exploration", 2007).
//
// A preemption just before an access that no other lane's steps depend on is as good as one just
// before the lane's next access that some do depend on: the order of independent steps makes no
// difference. So lanes are preempted only before accesses of shared words, those that one lane
// changes and another accesses. Which words are shared shows as executions go; when there is a new
// one, the search starts again from its beginning.
//
// A state is what the words hold that lanes have changed, and all that each lane has read since it
// started, which makes what it does next. Plain memory follows from these as long as it is free of
// races. States are compared by 60 bits of hashes.
#pragma once

#include <bit>

#include "directed_schedule.hpp"
#include "shared_words.hpp"
#include "state_set.hpp"

namespace warpheap::explore {

class schedule_search final : public directed_schedule {
 public:
  static constexpr u32 most_preemptions = 15;

  /// `at_yield_points_only` preempts at yield points alone.
  schedule_search(u32 preemptions, bool at_yield_points_only, bool follows_known_states)
      : bound_{preemptions}, at_yield_points_only_{at_yield_points_only}, follows_known_states_{follows_known_states} {
    if (preemptions > most_preemptions) throw backend_error{"a search takes at most 15 preemptions"};
  }

  /// Before each execution of the body.
  void restart() override {
    directed_schedule::restart();
    depth_ = 0;
    preemptions_ = 0;
  }

  /// After an execution: goes on to the next schedule. False if there is none.
  bool advance() {
    if (words_.has_grown()) {
      path_.clear();
      states_ = {};
      return true;
    }
    while (!path_.empty()) {
      auto& last = path_.back();
      if (last.left != 0) {
        last.chosen = static_cast<u32>(std::countr_zero(last.left));
        last.left &= last.left - 1;
        return true;
      }
      path_.pop_back();
    }
    return false;
  }

  u64 states() const { return states_.size(); }

  void observed(lane& by, u64 address, u64 before, u64 after, u64 result) override {
    directed_schedule::observed(by, address, before, after, result);
    if (address != 0) words_.add(address, by.number, before != after);
  }

 private:
  struct branch {
    u32 chosen;
    u64 left;  // the lanes that are still to be tried here
  };

  bool prefers_yield_points() const override { return at_yield_points_only_; }
  u32 choose(u32 usual, u64 allowed, u64 state, bool preempts) override {
    if (preempts && !may_preempt()) return usual;
    u64 const others = preempts && preemptions_ == bound_ ? 0 : allowed & ~(u64{1} << usual);
    if (others == 0) {
      // Nothing to choose, but the state may be known: then so is all that follows.
      if (depth_ == path_.size() && is_known(state)) end_early();
      return usual;
    }
    if (depth_ == path_.size()) {
      if (is_known(state)) end_early();
      path_.push_back({usual, others});
    }
    u32 const chosen = path_[depth_++].chosen;
    preemptions_ += preempts && chosen != usual;
    return chosen;
  }

  bool is_known(u64 state) { return states_.seen(state, preemptions_) && !follows_known_states_; }
  bool may_preempt() const { return at_yield_points_only_ ? named() != nullptr : words_.is_shared(pending()); }

  [[noreturn]] static void end_early() {
    auto* const here = host::detail::this_worker();
    if (here->runs_a_lane()) here->fail(std::make_exception_ptr(schedule_ended_early{}));
    throw schedule_ended_early{};
  }

  u32 bound_;
  bool at_yield_points_only_;
  bool follows_known_states_;
  std::vector<branch> path_;
  size_t depth_ = 0;
  u32 preemptions_ = 0;
  state_set states_;
  shared_words words_;
};

}  // namespace warpheap::explore
