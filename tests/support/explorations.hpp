// SPDX-License-Identifier: Apache-2.0
// Searches of schedules as tests. A short one runs in every test run, up to fewer preemptions;
// WARPHEAP_EXPLORE=1 runs the full one, which `make explore` does. WARPHEAP_EXPLORE_SECONDS=S
// draws programs alone, for S seconds of each allocator. Each prints a row of what it tried, in the
// columns of docs/design/exploration.md.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include "warpheap/explore/exploration.hpp"

namespace warpheap::test {

/// How far a search goes: preemptions in every test run, and in a full exploration.
struct search_bounds {
  u32 brief, full;
};

inline bool explores_fully() { return std::getenv("WARPHEAP_EXPLORE") != nullptr; }

inline bool draws_alone() { return std::getenv("WARPHEAP_EXPLORE_SECONDS") != nullptr; }

/// How far an allocator's drawn programs go, all of them together, and how many schedules each has.
struct drawn_programs {
  u64 programs;
  double seconds;
  u64 schedules;
};

inline drawn_programs limit_of_drawn_programs(u64 subjects) {
  if (draws_alone()) return {~u64{0}, std::atof(std::getenv("WARPHEAP_EXPLORE_SECONDS")), 100};
  return explores_fully() ? drawn_programs{300 * subjects, 1e9, 300} : drawn_programs{24 * subjects, 1e9, 40};
}

inline void print_row(std::string const& name, std::string const& bound, explore::exploration_result const& done) {
  std::cout << "| " << name << " | " << bound << " | " << done.schedules << " | " << done.cut << " | " << done.states
            << " | " << done.seconds << " |\n";
}

/// Expects that a search of `body` ends, and that every schedule is right.
template <class Body>
void expect_every_schedule_right(std::string const& name, search_bounds bounds, Body body,
                                 host::mask_policy masks = host::mask_policy::maximal) {
  if (host::detail::under_tsan) return;
  u32 const preemptions = explores_fully() ? bounds.full : bounds.brief;
  auto const done = explore::explore({.preemptions = preemptions, .masks = masks}, body);
  print_row(name, std::to_string(preemptions), done);
  EXPECT_TRUE(done.ended) << name;
  EXPECT_FALSE(done.fault) << name << ": " << done.fault->what;
}

/// Expects that a search of `body`, a mutant, finds a schedule under which it fails.
template <class Body>
void expect_some_schedule_wrong(std::string const& name, u32 preemptions, Body body,
                                host::mask_policy masks = host::mask_policy::maximal) {
  if (host::detail::under_tsan) return;
  auto const done = explore::explore({.preemptions = preemptions, .masks = masks}, body);
  EXPECT_TRUE(done.fault) << name;
}

}  // namespace warpheap::test
