// SPDX-License-Identifier: Apache-2.0
// The schedules of deterministic mode: the same seed gives the same schedule, no lane starves, and
// faults are found by some seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/support/schedules.hpp"
#include "warpheap/platform/backoff.hpp"
#include "warpheap/platform/device_buffer.hpp"

namespace warpheap { namespace {

using host::execution_mode;
using host::schedule_policy;

struct mixture {
  void operator()(u32* words, u32* log) const {
    lane_mask const mask = simt::active_mask();
    for (u32 i = 0; i < 4; ++i) {
      log[atomic_ref<u32>{words[0]}.fetch_add(1, order::acq_rel)] = static_cast<u32>(global_thread_index());
      if (simt::ballot(mask, simt::lane_id() % 2))
        atomic_ref<u32>{words[1 + i]}.fetch_xor(static_cast<u32>(mask), order::relaxed);
      if (simt::lane_id() % 5 == 0) simt::pause(20);
    }
    simt::sync_block();
    if (simt::thread_index() == 0) atomic_ref<u32>{words[5]}.store(static_cast<u32>(simt::clock()), order::relaxed);
  }
};

struct outcome {
  std::vector<u32> words, log;
  u64 hash, steps;
  bool operator==(outcome const&) const = default;
};

outcome run_mixture(u64 seed) {
  host::scoped_execution const use{test::schedule_of(seed)};
  device_buffer<u32> words(8), log(4 * 200);
  launch({4, 50}, mixture{}, words.data(), log.data());
  return {words.to_host(), log.to_host(), host::last_run().schedule_hash, host::last_run().steps};
}

TEST(Schedule, ASeedReplaysExactly) {
  for (u64 seed = 0; seed < 24; ++seed) EXPECT_EQ(run_mixture(seed), run_mixture(seed)) << "seed " << seed;
}

TEST(Schedule, SeedsDiffer) {
  std::set<u64> hashes;
  for (u64 seed = 1; seed < 64; seed += 4) hashes.insert(run_mixture(seed).hash);
  EXPECT_EQ(hashes.size(), 16u);
}

struct trap_at_some_point {
  void operator()(u32* words) const {
    for (u32 i = 0; i < 10; ++i) {
      if (atomic_ref<u32>{words[simt::lane_id()]}.fetch_add(1, order::relaxed) == 15) simt::trap("found");
    }
  }
};

std::string failure_of(u64 seed) {
  host::scoped_execution const use{test::schedule_of(seed)};
  device_buffer<u32> words(32);
  try {
    launch({2, 32}, trap_at_some_point{}, words.data());
  } catch (host::trap_error const& error) {
    return error.what();
  }
  return "no failure";
}

TEST(Schedule, AFailureReplaysWithTheSameReportAndNamesItsSeed) {
  // Buffers are numbered as they are made, so the number of this one is not part of the claim.
  auto const without_buffers = [](std::string text) {
    for (size_t at = 0; (at = text.find("buffer ", at)) != std::string::npos; ++at) {
      text.erase(at, text.find(" + ", at) - at);
    }
    return text;
  };
  for (u64 seed = 3; seed < 13; seed += 3) {
    auto const report = failure_of(seed);
    EXPECT_NE(report.find("found (thread block "), std::string::npos) << report;
    EXPECT_NE(report.find("seed " + std::to_string(seed)), std::string::npos) << report;
    EXPECT_NE(report.find("fetch_add buffer "), std::string::npos) << report;
    EXPECT_EQ(without_buffers(report), without_buffers(failure_of(seed)));
  }
}

struct interleave {
  void operator()(u32* turn, u32* widest) const {
    u32 const first = atomic_ref<u32>{*turn}.fetch_add(1, order::relaxed);
    u32 last = first;
    for (u32 i = 0; i < 99; ++i) last = atomic_ref<u32>{*turn}.fetch_add(1, order::relaxed);
    widest[global_thread_index()] = last - first;
  }
};

TEST(Schedule, RoundRobinGivesEachLaneOneStepInTurn) {
  host::scoped_execution const use{{.mode = execution_mode::deterministic, .policy = schedule_policy::round_robin}};
  device_buffer<u32> turn(1), widest(64);
  launch({2, 32}, interleave{}, turn.data(), widest.data());
  for (u32 const each : widest.to_host()) EXPECT_EQ(each, 99 * 64u);
}

/// One lane waits without a pause for another of its warp.
struct spin_without_pause {
  void operator()(u32* flag) const {
    if (simt::lane_id() == 0) {
      while (!atomic_ref<u32>{*flag}.load(order::acquire)) {
      }
    } else {
      for (u32 i = 0; i < 10; ++i) simt::pause(1000);
      atomic_ref<u32>{*flag}.store(1, order::release);
    }
  }
};

TEST(Schedule, SpinningWithoutPauseStarvesNobody) {
  test::for_each_schedule(20, [] {
    device_buffer<u32> flag(1);
    launch({3, 2}, spin_without_pause{}, flag.data());
    EXPECT_EQ(flag[0], 1u);
  });
}

/// All lanes but one wait for that one, and wake each other all the time. It waits as well, for a
/// while.
struct wake_each_other {
  WARPHEAP_DEVICE void operator()(u32* done, u32* word) const {
    if (simt::thread_index() != 5) {
      for (; !atomic_ref<u32>{*done}.load(order::relaxed); simt::pause(10))
        atomic_ref<u32>{*word}.fetch_add(1, order::relaxed);
      return;
    }
    for (u32 i = 0; i < 2000; ++i) {
      atomic_ref<u32>{*word}.load(order::relaxed);
      simt::pause(10);
    }
    atomic_ref<u32>{*done}.store(1, order::relaxed);
  }
};

TEST(Schedule, LanesThatWakeEachOtherStarveNobody) {
  for (u64 seed = 0; seed < 100; ++seed) {
    auto run = test::schedule_of(seed);
    run.step_cap = 4'000'000;
    host::scoped_execution const use{run};
    device_buffer<u32> done(1), word(1);
    EXPECT_NO_THROW(launch({1, 20}, wake_each_other{}, done.data(), word.data())) << "seed " << seed;
    if (HasFailure()) return;
  }
}

/// One lane pauses often before it stops the other, which never pauses.
struct spin_until_stopped {
  WARPHEAP_DEVICE void operator()(u32* stop) const {
    if (simt::thread_index() == 1) {
      for (u32 i = 0; i < 1000; ++i) simt::pause(10);
      atomic_ref<u32>{*stop}.store(1, order::relaxed);
      return;
    }
    while (atomic_ref<u32>{*stop}.load(order::relaxed) == 0) {
    }
  }
};

TEST(Schedule, ALaneThatHasPausedOftenIsNotStarvedByOneThatSpins) {
  for (u64 seed = 0; seed < 40; ++seed) {
    auto run = test::schedule_of(seed);
    run.step_cap = 20'000'000;
    host::scoped_execution const use{run};
    device_buffer<u32> stop(1);
    EXPECT_NO_THROW(launch({1, 2}, spin_until_stopped{}, stop.data())) << "seed " << seed;
    if (HasFailure()) return;
  }
}

/// All lanes pause but one, and count how often they ran meanwhile.
struct pause_lets_others_go {
  void operator()(u32* done, u32* turns) const {
    if (simt::thread_index() == 0) {
      for (u32 i = 0; i < 500; ++i) atomic_ref<u32>{turns[0]}.fetch_add(1, order::relaxed);
      atomic_ref<u32>{*done}.store(1, order::release);
    } else {
      while (!atomic_ref<u32>{*done}.load(order::acquire)) {
        simt::pause(10);
        atomic_ref<u32>{turns[1]}.fetch_add(1, order::relaxed);
      }
    }
  }
};

/// One lane calls active_mask() all the time, and never pauses; the other pauses before it stops
/// that.
struct ask_converged_until_stopped {
  WARPHEAP_DEVICE void operator()(u32* stop, u32* turns) const {
    if (simt::thread_index() == 1) {
      simt::pause(100);
      atomic_ref<u32>{*stop}.store(1, order::relaxed);
      return;
    }
    while (*turns < 1'000'000 && atomic_ref<u32>{*stop}.load(order::relaxed) == 0) *turns += simt::active_mask() != 0;
  }
};

TEST(Schedule, AskingForTheActiveMaskWithoutPauseStarvesNobody) {
  for (auto const mode : {host::execution_mode::parallel, host::execution_mode::deterministic}) {
    host::scoped_execution const use{{.mode = mode, .os_threads = 1}};
    device_buffer<u32> stop(1), turns(1);
    launch({1, 2}, ask_converged_until_stopped{}, stop.data(), turns.data());
    synchronize();
    EXPECT_EQ(stop[0], 1u);
    EXPECT_LT(turns[0], 1'000'000u);
  }
}

TEST(Schedule, PausedLanesRunLessThanOthers) {
  host::scoped_execution const use{{.mode = execution_mode::deterministic, .policy = schedule_policy::round_robin}};
  device_buffer<u32> done(1), turns(2);
  launch({1, 8}, pause_lets_others_go{}, done.data(), turns.data());
  EXPECT_EQ(turns[0], 500u);
  EXPECT_LT(turns[1], 700u);  // the seven of them; three steps a turn would be 1,167
  EXPECT_GT(turns[1], 70u);
}

/// Test-and-set with a plain load and store in place of an exchange.
struct broken_spin_lock {
  void operator()(u32* lock, u32* inside, u32* overlaps) const {
    backoff wait;
    while (atomic_ref<u32>{*lock}.load(order::acquire)) wait.while_working();
    atomic_ref<u32>{*lock}.store(1, order::relaxed);
    if (atomic_ref<u32>{*inside}.fetch_add(1, order::relaxed)) atomic_ref<u32>{*overlaps}.store(1, order::relaxed);
    atomic_ref<u32>{*inside}.fetch_sub(1, order::relaxed);
    atomic_ref<u32>{*lock}.store(0, order::release);
  }
};

TEST(Schedule, FindsABrokenSpinLock) {
  EXPECT_TRUE(test::find_failing_schedule(50, [] {
    device_buffer<u32> words(3);
    launch({2, 1}, broken_spin_lock{}, words.data(), words.data() + 1, words.data() + 2);
    return words[2] == 0;
  }));
}

/// A lock that unlocks without a release: mutual exclusion holds, but what it protects is seen
/// late.
template <order Unlock>
struct relaxed_unlock {
  void operator()(u32* lock, u32* counter) const {
    u32 unlocked = 0;
    while (!atomic_ref<u32>{*lock}.compare_exchange(unlocked, 1, order::acquire, order::relaxed)) {
      unlocked = 0;
      simt::pause(10);
    }
    u32 const seen = atomic_ref<u32>{*counter}.load(order::relaxed);
    atomic_ref<u32>{*counter}.store(seen + 1, order::relaxed);
    atomic_ref<u32>{*lock}.store(0, Unlock);
  }
};

template <order Unlock>
bool unlock_keeps_count() {
  device_buffer<u32> words(2);
  launch({2, 4}, relaxed_unlock<Unlock>{}, words.data(), words.data() + 1);
  return words[1] == 8;
}

TEST(Schedule, FindsAnUnlockWithoutRelease) {
  if (host::detail::under_tsan) GTEST_SKIP();  // no weak memory there
  EXPECT_TRUE(test::find_failing_schedule(50, unlock_keeps_count<order::relaxed>));
  EXPECT_FALSE(test::find_failing_schedule(50, unlock_keeps_count<order::release>));
}

/// Waiters look for work, then go to the barrier; one that looked too early never finds it.
struct lost_wakeup {
  void operator()(u32* sleepers, u32* wakeups) const {
    if (simt::lane_id() == 0) {
      u32 const asleep = atomic_ref<u32>{*sleepers}.load(order::acquire);
      // wakes only a lane that sleeps already
      if (asleep) atomic_ref<u32>{*wakeups}.store(1, order::release);
      else atomic_ref<u32>{*wakeups}.store(2, order::release);
    } else {
      if (atomic_ref<u32>{*wakeups}.load(order::acquire) == 2) return;
      atomic_ref<u32>{*sleepers}.fetch_add(1, order::acq_rel);
      simt::pause(10);
      // sleeps for good
      if (atomic_ref<u32>{*wakeups}.load(order::acquire) != 1) simt::sync_warp(3);
    }
  }
};

TEST(Schedule, FindsALostWakeup) {
  bool found = false;
  for (u64 seed = 0; seed < 100 && !found; ++seed) {
    host::scoped_execution const use{test::schedule_of(seed)};
    device_buffer<u32> words(2);
    try {
      launch({1, 2}, lost_wakeup{}, words.data(), words.data() + 1);
    } catch (host::schedule_error const&) {
      found = true;
    }
  }
  EXPECT_TRUE(found);
}

TEST(Schedule, ParallelModeUsesSeveralOsThreads) {
  host::scoped_execution const use{{.sm_count = 4, .blocks_per_sm = 1, .os_threads = 4}};
  device_buffer<u32> turn(1), widest(4 * 64);
  launch({4, 64}, interleave{}, turn.data(), widest.data());
  EXPECT_EQ(turn[0], 4 * 64 * 100u);
}

TEST(Schedule, SettingsEndWithTheirScope) {
  u32 const before = backend::multiprocessors();
  {
    host::scoped_execution const use{{.sm_count = before + 3}};
    EXPECT_EQ(backend::multiprocessors(), before + 3);
  }
  EXPECT_EQ(backend::multiprocessors(), before);
}

}}  // namespace warpheap
