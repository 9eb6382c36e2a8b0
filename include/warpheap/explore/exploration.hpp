// SPDX-License-Identifier: Apache-2.0
// Explores the schedules of a body: of code that sets memory up, launches kernels, and checks what
// they have done.
//
//   auto const found = explore::explore({.preemptions = 2}, [] {
//     device_buffer<u32> words(2);
//     launch({2, 1}, my_kernel{}, words.data());
//     return words[0] == 2 ? "" : "an update was lost";
//   });
//   EXPECT_TRUE(found.ended && !found.fault) << describe(found);
//
// The body is executed thousands of times. It must do the same whenever its lanes are scheduled
// alike: no clocks, no random numbers without a seed, and no device memory that outlives it.
// A failure is reported with the fewest deviations from the default schedule that still show it.
#pragma once

#include <chrono>
#include <concepts>
#include <functional>
#include <optional>
#include <string>

#include "../platform/device_buffer.hpp"
#include "random_priorities.hpp"
#include "schedule_search.hpp"

namespace warpheap::explore {

/// As long as one of these lives, an explored body's kernels run in one way alone, by turns: for
/// setting up, counting, and launches of more than 64 lanes.
class unexplored : public host::scoped_execution {
 public:
  unexplored()
      : host::scoped_execution{{.mode = host::execution_mode::deterministic,
                                .policy = host::schedule_policy::round_robin,
                                .masks = host::mask_policy::maximal}} {}
};

/// What to try.
struct exploration {
  /// All schedules of up to this many preemptions, [0, 15], until there are no more. Without it:
  /// random priorities, a seed a schedule.
  std::optional<u32> preemptions = std::nullopt;
  /// A search preempts at yield points alone (WARPHEAP_POINT).
  bool at_yield_points_only = false;
  /// A search follows states that it knows again: far slower, to check the search itself.
  bool follows_known_states = false;
  /// Schedules to try at most.
  u64 schedules = u64{1} << 40;
  /// Time to take at most.
  double seconds = 1e9;
  /// Of the first schedule; the next one has the next seed.
  u64 seed = 1;
  /// Answers of active_mask(). A search has none that are drawn: singleton or maximal.
  host::mask_policy masks = host::mask_policy::maximal;
  /// Loads may return older values; not with a search.
  bool weak_memory = false;
  u32 sm_count = 8;
  u32 blocks_per_sm = 8;
  /// Steps of one execution after which it counts as hung.
  u64 step_cap = u64{1} << 22;
  /// Called a few times a second with what is done so far. False ends the exploration.
  std::function<bool(struct exploration_result const&)> proceed = nullptr;
};

/// A schedule under which the body fails.
struct found_fault {
  std::string what;
  u64 seed = 0;
  /// Whether yield points count as decisions in `deviations`.
  bool counts_yield_points = false;
  std::vector<deviation> deviations;
};

struct exploration_result {
  u64 schedules = 0;  ///< executed to their end
  u64 cut = 0;        ///< ended early in a state that was known
  u64 states = 0;     ///< of a search
  u64 steps = 0;
  double seconds = 0;
  bool ended = false;  ///< a search has tried all schedules within its bound
  std::optional<found_fault> fault = std::nullopt;
};

namespace detail {

/// A body: what is wrong, or nothing.
using explored_body = std::function<std::string()>;

/// Executes a body under a schedule.
class explorer {
 public:
  explorer(exploration const& how, explored_body const& body) : how_{how}, body_{body} {
    if (how.preemptions && how.weak_memory) throw backend_error{"a search of schedules does not search weak memory"};
    bool const drawn = how.masks == host::mask_policy::random || how.masks == host::mask_policy::mixed;
    if (how.preemptions && drawn) throw backend_error{"a search of schedules takes masks that are not drawn"};
    if (host::detail::arena_of_thread) throw backend_error{"explore called inside an exploration"};
  }

  exploration_result run() {
    if (!how_.preemptions) return run_seeds();
    search_tree tree{*how_.preemptions};
    schedule_search search{tree, how_.at_yield_points_only, how_.follows_known_states};
    do {
      execute(search, how_.seed, how_.at_yield_points_only);
      done_.states = tree.states.size();
    } while (!done_.fault && (done_.ended = !tree.advance(), !done_.ended) && goes_on());
    if (tree.strayed) throw backend_error{"an explored body does not do the same when its lanes are scheduled alike"};
    return finish();
  }

  /// Executes one schedule again; what is wrong with it, or nothing.
  std::string replay(found_fault const& fault) {
    replayed_schedule schedule{fault.deviations, fault.counts_yield_points};
    return outcome(schedule, fault.seed);
  }

 private:
  using clock = std::chrono::steady_clock;

  exploration_result run_seeds() {
    // Without deviations first: its length says where to put them.
    replayed_schedule usual{{}, true};
    execute(usual, how_.seed, true);
    for (u64 i = 0; goes_on() && !done_.fault; ++i) {
      random_priorities schedule{how_.seed + i, usual.decisions(), usual.names()};
      execute(schedule, how_.seed + i, true);
    }
    return finish();
  }

  bool goes_on() {
    done_.seconds = std::chrono::duration<double>(clock::now() - begin_).count();
    if (how_.proceed && done_.seconds > reported_ + 0.2) {
      reported_ = done_.seconds;
      if (!how_.proceed(done_)) return false;
    }
    return done_.schedules + done_.cut < how_.schedules && done_.seconds < how_.seconds;
  }

  exploration_result finish() {
    if (done_.fault) make_shorter(*done_.fault);
    done_.seconds = std::chrono::duration<double>(clock::now() - begin_).count();
    return done_;
  }

  void execute(directed_schedule& schedule, u64 seed, bool counts_yield_points) {
    auto const what = outcome(schedule, seed);
    if (was_cut_) {
      ++done_.cut;
      return;
    }
    ++done_.schedules;
    if (!what.empty()) done_.fault = found_fault{what, seed, counts_yield_points, schedule.deviations()};
  }

  std::string outcome(directed_schedule& schedule, u64 seed) {
    was_cut_ = false;
    arena_.restart();
    host::detail::allocations().restart_numbers();
    schedule.restart();
    host::scoped_execution const use{{.mode = host::execution_mode::deterministic,
                                      .policy = host::schedule_policy::directed,
                                      .director = &schedule,
                                      .masks = how_.masks,
                                      .seed = seed,
                                      .sm_count = how_.sm_count,
                                      .blocks_per_sm = how_.blocks_per_sm,
                                      .step_cap = how_.step_cap,
                                      .weak_memory = how_.weak_memory}};
    struct arena_scope {
      explicit arena_scope(host::detail::arena& used) { host::detail::arena_of_thread = &used; }
      ~arena_scope() { host::detail::arena_of_thread = nullptr; }
    } const scope{arena_};
    try {
      std::string what = body_();
      done_.steps += schedule.decisions();
      return what;
    } catch (schedule_ended_early const&) {
      was_cut_ = true;
    } catch (std::exception const& error) {
      return error.what();
    }
    return {};
  }

  /// Drops deviations as long as the body still fails: halves of the list, quarters, and so on.
  void make_shorter(found_fault& fault) {
    for (size_t part = (fault.deviations.size() + 1) / 2; part != 0; part = part == 1 ? 0 : (part + 1) / 2) {
      for (size_t first = 0; first < fault.deviations.size();) {
        auto shorter = fault;
        size_t const last = (std::min)(first + part, fault.deviations.size());
        shorter.deviations.erase(shorter.deviations.begin() + static_cast<std::ptrdiff_t>(first),
                                 shorter.deviations.begin() + static_cast<std::ptrdiff_t>(last));
        shorter.what = replay(shorter);
        if (shorter.what.empty()) first += part;
        else fault = shorter;
      }
    }
  }

  exploration const& how_;
  explored_body const& body_;
  host::detail::arena arena_;
  exploration_result done_;
  bool was_cut_ = false;
  double reported_ = 0;
  clock::time_point begin_ = clock::now();
};

/// A body whose verdict is in words.
template <class Body>
explored_body in_words(Body body) {
  if constexpr (std::same_as<decltype(body()), bool>) {
    return [body]() mutable { return std::string{body() ? "" : "the body's check failed"}; };
  } else {
    return body;
  }
}

}  // namespace detail

/// Tries schedules of `body` until one fails, or as `how` says. `body` returns a bool, or a string
/// that says what is wrong, empty if nothing is; what it throws is a failure too.
template <class Body>
exploration_result explore(exploration const& how, Body body) {
  auto const explored = detail::in_words(std::move(body));
  return detail::explorer{how, explored}.run();
}

/// Executes `body` once more under the schedule of `fault`, with settings as those that found it.
/// Returns what is wrong, empty if nothing is.
template <class Body>
std::string replay(exploration const& how, found_fault const& fault, Body body) {
  auto const explored = detail::in_words(std::move(body));
  return detail::explorer{how, explored}.replay(fault);
}

}  // namespace warpheap::explore
