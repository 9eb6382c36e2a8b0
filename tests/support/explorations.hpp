// Searches of schedules as tests. A short one runs in every test run, up to fewer preemptions;
// WARPHEAP_EXPLORE=1 runs the full one, which `make explore` does. Each prints a row of what it
// tried, in the columns of docs/design/exploration.md.
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

/// Expects that a search of `body`, a broken twin, finds a schedule under which it fails.
template <class Body>
void expect_some_schedule_wrong(std::string const& name, u32 preemptions, Body body,
                                host::mask_policy masks = host::mask_policy::maximal) {
  if (host::detail::under_tsan) return;
  auto const done = explore::explore({.preemptions = preemptions, .masks = masks}, body);
  EXPECT_TRUE(done.fault) << name;
}

}  // namespace warpheap::test
