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

/// What a search keeps from one execution to the next, all in memory of one kind.
struct search_tree {
  static constexpr u32 most_preemptions = 15;

  struct branch {
    u32 chosen;
    u64 left;   // the lanes that are still to be tried here
    u64 state;  // always the same: what comes before it is
  };

  /// States past `most_states` are not kept: a search that knows fewer is as right, and longer.
  explicit search_tree(u32 first_bound, std::pmr::memory_resource* memory = std::pmr::get_default_resource(),
                       size_t most_states = ~size_t{0} >> 1)
      : bound{first_bound}, path{memory}, states{memory, 2 * most_states}, words{memory} {
    if (first_bound > most_preemptions) throw backend_error{"a search takes at most 15 preemptions"};
  }

  /// Before an execution.
  void begin() { depth = preemptions = 0; }

  /// After an execution: goes on to the next schedule. False if there is none, or it has strayed.
  bool advance() {
    strayed |= depth != path.size();
    if (strayed) return false;
    if (words.has_grown()) {
      restart();
      return true;
    }
    while (!path.empty()) {
      auto& last = path.back();
      if (last.left != 0) {
        last.chosen = static_cast<u32>(std::countr_zero(last.left));
        last.left &= last.left - 1;
        return true;
      }
      path.pop_back();
    }
    return false;
  }

  /// After the last schedule within the bound: one more preemption. False if that leads nowhere
  /// new.
  bool raise_bound() {
    if (!leaves_some || bound == most_preemptions) return false;
    ++bound;
    restart();
    return true;
  }

  u32 bound;
  bool leaves_some = false;  ///< schedules of more preemptions
  bool strayed = false;      ///< an execution went another way than before under the same schedule
  u32 preemptions = 0;       ///< of this execution so far
  size_t depth = 0;          ///< branches of the path that it has passed
  std::pmr::vector<branch> path;
  state_set states;
  shared_words words;

 private:
  void restart() {
    leaves_some = false;
    path.clear();
    states.clear();
  }
};

/// The next schedule of a search.
class schedule_search : public directed_schedule {
 public:
  /// `at_yield_points_only` preempts at yield points alone.
  explicit schedule_search(search_tree& tree, bool at_yield_points_only = false, bool follows_known_states = false)
      : tree_{tree}, at_yield_points_only_{at_yield_points_only}, follows_known_states_{follows_known_states} {}

  void restart() override {
    directed_schedule::restart();
    tree_.begin();
  }

  void observed(lane& by, u64 address, u64 before, u64 after, u64 result) override {
    directed_schedule::observed(by, address, before, after, result);
    if (address != 0) tree_.words.add(address, by.number, before != after);
  }

 protected:
  u32 choose(u32 usual, u64 allowed, u64 state, bool preempts) override {
    if (preempts && !may_preempt()) return usual;
    u64 others = allowed & ~(u64{1} << usual);
    if (preempts && tree_.preemptions == tree_.bound) {
      tree_.leaves_some |= others != 0;
      others = 0;
    }
    if (others == 0) {
      // Nothing to choose, but the state may be known: then so is all that follows.
      if (tree_.depth == tree_.path.size() && is_known(state)) end_early();
      return usual;
    }
    if (tree_.depth == tree_.path.size()) {
      if (is_known(state)) end_early();
      tree_.path.push_back({usual, others, state});
    }
    auto const& here = tree_.path[tree_.depth];
    if (here.state != state) end_early();  // short of the path's end
    ++tree_.depth;
    tree_.preemptions += preempts && here.chosen != usual;
    return here.chosen;
  }

 private:
  bool prefers_yield_points() const override { return at_yield_points_only_; }

  bool is_known(u64 state) { return tree_.states.seen(state, tree_.preemptions) && !follows_known_states_; }
  bool may_preempt() const { return at_yield_points_only_ ? named() != nullptr : tree_.words.is_shared(pending()); }

  /// This execution leads nowhere new.
  [[noreturn]] virtual void end_early() {
    auto* const here = host::detail::this_worker();
    if (here->runs_a_lane()) here->fail(std::make_exception_ptr(schedule_ended_early{}));
    throw schedule_ended_early{};
  }

  search_tree& tree_;
  bool at_yield_points_only_;
  bool follows_known_states_;
};

}  // namespace warpheap::explore
