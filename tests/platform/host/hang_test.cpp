// SPDX-License-Identifier: Apache-2.0
// Lanes that wait for ever are told, with the word that they look at and the lane that left it so;
// lanes that wait for something that happens are not.
#include <gmock/gmock.h>

#include <chrono>
#include <thread>

#include "tests/support/schedules.hpp"
#include "warpheap/platform/device_buffer.hpp"

namespace warpheap { namespace {

using host::execution;
using host::execution_mode;
using host::schedule_policy;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

struct mode {
  char const* name;
  execution run;
};

mode const modes[] = {
    {"round robin", {.mode = execution_mode::deterministic, .policy = schedule_policy::round_robin}},
    {"random walk", {.mode = execution_mode::deterministic}},
    {"priorities", {.mode = execution_mode::deterministic, .policy = schedule_policy::priorities}},
    {"weak memory", {.mode = execution_mode::deterministic, .weak_memory = true}},
    {"one OS thread", {.os_threads = 1}},
    {"four OS threads", {.os_threads = 4}},
};

/// What ends the kernel, empty if it ends by itself.
template <class Kernel, class... Arguments>
std::string fault_of(launch_shape shape, Kernel kernel, Arguments... arguments) {
  try {
    launch(shape, kernel, arguments...);
  } catch (host::schedule_error const& error) {
    return error.what();
  }
  return {};
}

/// `expected` of what ends the kernel, in every mode. Searches begin early.
template <class Kernel, class Matcher>
void expect_in_all_modes(launch_shape shape, Kernel kernel, Matcher expected) {
  for (auto const& [name, settings] : modes) {
    SCOPED_TRACE(name);
    auto quick = settings;
    quick.hang_steps = 1 << 10;
    host::scoped_execution const use{quick};
    device_buffer<u32> const words{64};
    EXPECT_THAT(fault_of(shape, kernel, words.data()), expected);
  }
}

void lock(u32* word) {
  while (atomic_ref<u32>{*word}.exchange(1, order::acquire) != 0) simt::pause(20);
}

struct lock_and_return {
  void operator()(u32* words) const { lock(words); }
};

TEST(Hang, NamesTheWordAndTheLaneThatHoldsIt) {
  for (auto const& [name, settings] : modes) {
    SCOPED_TRACE(name);
    host::scoped_execution const use{settings};
    device_buffer<u32> const words{1};
    auto const start = std::chrono::steady_clock::now();
    auto const fault = fault_of({2, 40}, lock_and_return{}, words.data());
    // On an idle machine one second.
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds{30});
    EXPECT_THAT(fault, AllOf(HasSubstr("hang: "), HasSubstr(" look again and again at buffer "), HasSubstr("; at ")));
    if (settings.mode == execution_mode::deterministic) {
      EXPECT_THAT(fault, AllOf(HasSubstr(" = 0x1, left so at step "), HasSubstr(", which has returned; at ")));
    }
  }
}

auto const all_lanes = host::detail::lanes_of(full_mask);

struct meet_with_the_lock {
  void operator()(u32* words) const {
    lock(words);
    simt::sync_warp(full_mask);
    atomic_ref<u32>{*words}.store(0, order::release);
  }
};

TEST(Hang, NamesTheCollectiveThatTheHolderWaitsIn) {
  expect_in_all_modes({1, warp_lanes}, meet_with_the_lock{},
                      AllOf(HasSubstr("hang: "), HasSubstr("wait in sync_warp(mask " + all_lanes + ") for lanes {"),
                            AnyOf(HasSubstr("parallel mode"), HasSubstr(", which waits in sync_warp; at "))));
}

struct spin_without_a_pause {
  void operator()(u32* words) const {
    while (atomic_ref<u32>{*words}.load(order::relaxed) == 0) {
    }
  }
};

struct spin_and_count {
  void operator()(u32* words) const {
    for (u64 looks = 0; atomic_ref<u32>{*words}.load(order::relaxed) == 0; ++looks)
      simt::spin(static_cast<u32>(looks % 64));
  }
};

struct spin_in_collectives {
  void operator()(u32* words) const {
    while (simt::ballot(full_mask, simt::lane_id() == 3 && atomic_ref<u32>{*words}.load(order::relaxed) != 0) == 0) {
    }
  }
};

struct spin_in_barriers {
  void operator()(u32* words) const {
    for (;;) {
      if (simt::thread_index() == 7 && atomic_ref<u32>{words[0]}.load(order::relaxed) != 0) words[1] = 1;
      simt::sync_block();
      if (words[1] != 0) return;
      simt::sync_block();
    }
  }
};

struct spin_between_two_words {
  void operator()(u32* words) const {
    u32 unequal = 1;
    while (!atomic_ref<u32>{words[0]}.compare_exchange(unequal, 2, order::relaxed, order::relaxed)) {
      if (atomic_ref<u32>{words[9]}.fetch_or(0, order::relaxed) != 0) return;
      unequal = 1;
    }
  }
};

TEST(Hang, IsToldHoweverLanesWait) {
  expect_in_all_modes({1, 1}, spin_without_a_pause{}, HasSubstr("hang: "));
  expect_in_all_modes({3, 40}, spin_without_a_pause{}, HasSubstr("hang: "));
  expect_in_all_modes({2, 40}, spin_and_count{}, HasSubstr("hang: "));
  expect_in_all_modes({2, 64}, spin_in_collectives{}, HasSubstr("hang: "));
  expect_in_all_modes({2, 64}, spin_in_barriers{}, HasSubstr("hang: "));
  expect_in_all_modes({2, 40}, spin_between_two_words{}, HasSubstr("hang: "));
}

struct wait_for_the_last_block {
  void operator()(u32* words) const {
    if (simt::block_index() + 1 == simt::grid_dim()) atomic_ref<u32>{*words}.store(1, order::release);
    while (atomic_ref<u32>{*words}.load(order::acquire) == 0) simt::pause(20);
  }
};

TEST(Hang, CountsThreadBlocksThatHaveNoPlace) {
  for (auto settings : {modes[0].run, modes[2].run, modes[4].run, modes[5].run}) {
    settings.sm_count = settings.blocks_per_sm = 2;
    settings.hang_steps = 1 << 10;
    host::scoped_execution const use{settings};
    device_buffer<u32> const words{1};
    EXPECT_THAT(fault_of({9, 8}, wait_for_the_last_block{}, words.data()),
                HasSubstr("5 thread blocks have not started"));
  }
}

struct look_often {
  void operator()(u32* words) const {
    u64 sum = 0;
    for (u32 i = 0; i < 3'000'000; ++i) sum += atomic_ref<u32>{words[i % 2]}.load(order::relaxed);
    if (sum != 0) simt::trap("words changed");
  }
};

struct only_meet {
  void operator()(u32* words) const {
    u32 sum = simt::lane_id();
    for (u32 i = 0; i < 20'000; ++i) sum += simt::shuffle(full_mask, sum, i % 32);
    for (u32 i = 0; i < 3'000; ++i) simt::sync_block();
    words[simt::thread_index()] = sum;
  }
};

struct read_many_words {
  void operator()(u32* words) const {
    for (u32 i = 0; i < 100'000; ++i) {
      if (atomic_ref<u32>{words[i % 64]}.load(order::relaxed) != 0) simt::trap("words changed");
    }
  }
};

// host.Q1
TEST(Hang, WorkWithoutAChangeIsNone) {
  for (auto const& [name, settings] : modes) {
    SCOPED_TRACE(name);
    host::scoped_execution const use{settings};
    device_buffer<u32> const words{1};
    EXPECT_EQ(fault_of({1, 1}, look_often{}, device_buffer<u32>{2}.data()), "");
  }
  expect_in_all_modes({1, 64}, only_meet{}, "");
  expect_in_all_modes({1, 2}, read_many_words{}, "");
}

/// One warp works in collectives alone, the other waits for it.
struct wait_for_shuffles {
  void operator()(u32* words) const {
    if (simt::warp_id() == 0) {
      while (atomic_ref<u32>{words[0]}.load(order::acquire) == 0) simt::pause(1);
      return;
    }
    u32 sum = simt::lane_id();
    for (u32 i = 0; i < 20'000; ++i) sum += simt::shuffle(full_mask, sum, i % 32);
    if (sum == 0) words[1] = 1;  // the sums are used
    simt::sync_warp(full_mask);
    if (simt::lane_id() == 0) atomic_ref<u32>{words[0]}.store(1, order::release);
  }
};

TEST(Hang, WaitingForAWarpThatMeetsIsNone) { expect_in_all_modes({1, 2 * warp_lanes}, wait_for_shuffles{}, ""); }

/// Thread 0 works for long without a scheduling point; the others wait for it.
struct wait_for_plain_work {
  void operator()(u32* words) const {
    if (global_thread_index() == 0) std::this_thread::sleep_for(std::chrono::milliseconds{300});
    if (global_thread_index() == 0) atomic_ref<u32>{*words}.store(1, order::release);
    while (atomic_ref<u32>{*words}.load(order::acquire) == 0) simt::pause(1);
  }
};

TEST(Hang, WaitingForALaneThatWorksIsNone) { expect_in_all_modes({8, 4}, wait_for_plain_work{}, ""); }

struct wait_for_host {
  void operator()(u32* words) const {
    while (atomic_ref<u32, scope::system>{*words}.load(order::acquire) == 0) simt::pause(1);
  }
};

TEST(Hang, WaitingForTheHostIsNone) {
  for (auto const& [name, settings] : modes) {
    SCOPED_TRACE(name);
    auto quick = settings;
    quick.hang_steps = 64;
    host::scoped_execution const use{quick};
    device_buffer<u32> const words{1};
    std::thread host{[&] {
      std::this_thread::sleep_for(std::chrono::milliseconds{100});
      std::atomic_ref<u32>{*words.data()}.store(1);
    }};
    EXPECT_EQ(fault_of({2, 4}, wait_for_host{}, words.data()), "");
    host.join();
  }
}

struct wait_for_a_time {
  void operator()(u32* words) const {
    u64 const start = simt::nanoseconds();
    while (atomic_ref<u32>{*words}.load(order::relaxed) == 0 && simt::nanoseconds() - start < 50'000'000)
      simt::pause(1000);
  }
};

TEST(Hang, WaitingForATimeIsNone) {
  for (auto const& [name, settings] : modes) {
    SCOPED_TRACE(name);
    host::scoped_execution const use{settings};
    EXPECT_EQ(fault_of({2, 4}, wait_for_a_time{}, device_buffer<u32>{1}.data()), "");
  }
}

/// Each thread waits for the one before it, in the order of a chain through all thread blocks.
struct pass_on {
  void operator()(u32* words) const {
    u32 const me = static_cast<u32>(global_thread_index());
    while (atomic_ref<u32>{*words}.load(order::acquire) != me) simt::pause(1);
    atomic_ref<u32>{*words}.store(me + 1, order::release);
  }
};

// host.Q2
TEST(Hang, AChainOfWaitsIsNone) {
  for (u32 round = 0; round < 20; ++round) {
    host::scoped_execution const use{{.os_threads = 4, .hang_steps = 256}};
    EXPECT_EQ(fault_of({8, 40}, pass_on{}, device_buffer<u32>{1}.data()), "");
  }
}

TEST(Hang, ZeroStepsLeaveItToTheStepCap) {
  host::scoped_execution const use{{.mode = execution_mode::deterministic, .step_cap = 300'000, .hang_steps = 0}};
  EXPECT_THAT(fault_of({2, 4}, spin_without_a_pause{}, device_buffer<u32>{1}.data()),
              HasSubstr("step cap: the run has taken 300000"));
}

}}  // namespace warpheap
