// SPDX-License-Identifier: Apache-2.0
// Runs a test body under many schedules. On the host backend each seed stands for a scheduling
// policy, an active-mask policy, a residency, and weak memory or not; one parallel run follows. On
// a GPU the hardware schedules: the body runs once.
//
//   for_each_schedule(32, [&] {
//     device_buffer<u32> ...; launch(...); synchronize(); EXPECT_EQ(...);
//   });
//
// WARPHEAP_TEST_SEEDS=N runs N seeds in place of the number asked for; WARPHEAP_TEST_SEED=S replays
// seed S alone, and on a GPU is the seed of a body's random numbers.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <exception>
#include <optional>
#include <string>

#include "warpheap/platform/simt.hpp"

namespace warpheap::test {

namespace detail {

inline std::optional<u64> environment_number(char const* name) {
  char const* const text = std::getenv(name);
  if (!text) return std::nullopt;
  return std::strtoull(text, nullptr, 0);
}

/// Calls `body` and makes what it throws a test failure that still shows the trace of seeds.
template <class Body>
void run_guarded(Body& body) {
  try {
    body();
  } catch (std::exception const& error) {
    ADD_FAILURE() << error.what();
  }
}

}  // namespace detail

/// Whether bodies run on a GPU, where no test can choose the schedule: its counts are less certain
/// there.
#if defined(__CUDACC__)
inline constexpr bool on_gpu = true;
#else
inline constexpr bool on_gpu = false;
#endif

#if !defined(__CUDACC__)

/// Steps of one run after which a body counts as hung: about ten seconds.
inline constexpr u64 step_cap = u64{1} << 27;

/// The settings that a seed stands for. Small residencies come often: they make blocks wait for
/// each other.
inline host::execution schedule_of(u64 seed) {
  constexpr u32 residencies[][2] = {{1, 1}, {2, 1}, {2, 2}, {3, 1}, {4, 2}, {8, 4}};
  constexpr host::mask_policy masks[] = {host::mask_policy::maximal, host::mask_policy::random,
                                         host::mask_policy::singleton, host::mask_policy::random};
  using enum host::schedule_policy;
  constexpr host::schedule_policy policies[] = {round_robin, priorities, priorities, random_walk};
  auto const& residency = residencies[seed / 2 % 6];
  host::execution run;
  run.mode = host::execution_mode::deterministic;
  run.policy = policies[seed % 4];
  run.masks = masks[seed / 3 % 4];
  run.seed = seed;
  run.sm_count = residency[0];
  run.blocks_per_sm = residency[1];
  run.weak_memory = seed % 2 == 1;
  run.refuses_returned_lanes = true;  // no code of ours names them
  run.step_cap = step_cap;
  return run;
}

/// The seed of the schedule that a body runs under, for the body's own random numbers: a replay
/// then draws the same.
inline u64 schedule_seed() { return host::current_execution().seed; }

/// Runs `body` under `seeds` deterministic schedules, then once in parallel. Stops at the first
/// that fails, with its seed in the message. What the body throws is a failure.
template <class Body>
void for_each_schedule(unsigned seeds, Body body) {
  auto const replayed = detail::environment_number("WARPHEAP_TEST_SEED");
  u64 const first = replayed.value_or(0);
  u64 const count = replayed ? 1 : detail::environment_number("WARPHEAP_TEST_SEEDS").value_or(seeds);
  for (u64 seed = first; seed < first + count; ++seed) {
    auto const run = schedule_of(seed);
    SCOPED_TRACE("WARPHEAP_TEST_SEED=" + std::to_string(seed) + ": " + host::describe(run));
    host::scoped_execution const use{run};
    detail::run_guarded(body);
    if (testing::Test::HasFailure()) return;
  }
  if (replayed) return;
  SCOPED_TRACE("parallel mode");
  host::scoped_execution const use{{.step_cap = step_cap}};
  detail::run_guarded(body);
}

/// The first of `seeds` schedules under which `body` returns false or throws; for mutants that
/// must be caught. A mutant that hangs is stopped after `most_steps`.
template <class Body>
std::optional<u64> find_failing_schedule(unsigned seeds, Body body, u64 most_steps = step_cap) {
  for (u64 seed = 0; seed < seeds; ++seed) {
    auto run = schedule_of(seed);
    run.step_cap = most_steps;
    host::scoped_execution const use{run};
    try {
      if (!body()) return seed;
    } catch (std::exception const&) {
      return seed;
    }
  }
  return std::nullopt;
}

#else

inline u64 schedule_seed() { return detail::environment_number("WARPHEAP_TEST_SEED").value_or(1); }

template <class Body>
void for_each_schedule(unsigned, Body body) {
  detail::run_guarded(body);
}

#endif

}  // namespace warpheap::test
