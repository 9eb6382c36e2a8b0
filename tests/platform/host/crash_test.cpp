// SPDX-License-Identifier: Apache-2.0
// A lane that crashes is named on standard error, with what replays the crash, and the process dies
// as it would have without us.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <thread>

#include "warpheap/platform/device_buffer.hpp"

namespace warpheap { namespace {

using testing::AllOf;
using testing::ExitedWithCode;
using testing::HasSubstr;
using testing::KilledBySignal;
using testing::Not;

enum class crash_kind { null_pointer, endless_recursion, abort, sent_signal };

[[gnu::noinline]] u32 recurse_without_end(u32 volatile* depth) {
  u32 volatile room[64] = {};
  *depth = *depth + 1;
  room[*depth % 64] = *depth;
  return *depth == 0 ? 0 : recurse_without_end(depth) + room[*depth % 64];
}

/// Thread 37 of thread block 1 crashes after every lane has made a step.
struct crash_one {
  void operator()(crash_kind kind, u32* counter) const {
    atomic_ref<u32>{*counter}.fetch_add(1, order::relaxed);
    if (simt::block_index() != 1 || simt::thread_index() != 37) return;
    switch (kind) {
      case crash_kind::null_pointer: {
        u32* volatile nowhere = nullptr;
        *reinterpret_cast<u32 volatile*>(nowhere + 4) = 1;
        break;
      }
      case crash_kind::endless_recursion: *counter = recurse_without_end(counter); break;
      case crash_kind::abort: std::abort();
      case crash_kind::sent_signal: std::raise(SIGSEGV);
    }
  }
};

class CrashDeathTest : public testing::Test {
 protected:
  void SetUp() override {
    if (host::detail::under_asan || host::detail::under_tsan) GTEST_SKIP() << "a sanitizer takes the signal";
    testing::FLAGS_gtest_death_test_style = "threadsafe";
  }

  static void crash(crash_kind kind) {
    device_buffer<u32> counter(1);
    launch({3, 64}, crash_one{}, kind, counter.data());
  }
};

constexpr host::execution replayable{
    .mode = host::execution_mode::deterministic, .seed = 7, .sm_count = 2, .weak_memory = true};
constexpr char const* the_lane = "warpheap: thread block 1 thread 37 (warp 1 lane 5) ";
constexpr char const* settings_of_it =
    "\n  deterministic mode, seed 7, random_walk, active masks mixed, weak memory, 2 multiprocessors of 8 thread "
    "blocks, "
    "step ";

TEST_F(CrashDeathTest, ANullPointerNamesLaneSeedAndSettings) {
  host::scoped_execution const use{replayable};
  EXPECT_EXIT(crash(crash_kind::null_pointer), KilledBySignal(SIGSEGV),
              AllOf(HasSubstr(the_lane + std::string{"crashed: SIGSEGV at address 0x10"}), HasSubstr(settings_of_it)));
}

TEST_F(CrashDeathTest, AnOverflowOfItsStackIsCalledThat) {
  host::scoped_execution const use{replayable};
  EXPECT_EXIT(crash(crash_kind::endless_recursion), KilledBySignal(SIGSEGV),
              AllOf(HasSubstr(the_lane +
                              std::string{"overflowed its stack of 65536 bytes: raise host::execution::stack_bytes"}),
                    HasSubstr(settings_of_it)));
}

TEST_F(CrashDeathTest, AbortAndSignalsThatAreSentHaveNoAddress) {
  host::scoped_execution const use{replayable};
  EXPECT_EXIT(crash(crash_kind::abort), KilledBySignal(SIGABRT),
              HasSubstr(the_lane + std::string{"crashed: SIGABRT\n"}));
  EXPECT_EXIT(crash(crash_kind::sent_signal), KilledBySignal(SIGSEGV),
              HasSubstr(the_lane + std::string{"crashed: SIGSEGV\n"}));
}

TEST_F(CrashDeathTest, ThreadsOfParallelModeHaveAStackForIt) {
  EXPECT_EXIT(
      crash(crash_kind::endless_recursion), KilledBySignal(SIGSEGV),
      AllOf(HasSubstr(the_lane + std::string{"overflowed its stack"}), HasSubstr("\n  parallel mode, 8 multi")));
}

// host.C1
TEST_F(CrashDeathTest, AHandlerThatWasThereBeforeIsCalledNext) {
  host::scoped_execution const use{replayable};
  auto const crash_with_handler = [] {
    std::signal(SIGSEGV, [](int) { _exit(42); });
    crash(crash_kind::null_pointer);
  };
  EXPECT_EXIT(crash_with_handler(), ExitedWithCode(42), HasSubstr(the_lane));
  auto const abort_with_handler = [] {
    std::signal(SIGABRT, [](int) { _exit(43); });
    crash(crash_kind::abort);
  };
  EXPECT_EXIT(abort_with_handler(), ExitedWithCode(43), HasSubstr(the_lane));
}

TEST_F(CrashDeathTest, WhatCrashesOutsideOfAKernelIsNotOurs) {
  auto const crash_after_kernel = [] {
    device_buffer<u32> counter(1);
    launch({1, 64}, crash_one{}, crash_kind::abort, counter.data());  // only thread block 1 would
    std::raise(SIGSEGV);
  };
  EXPECT_EXIT(crash_after_kernel(), KilledBySignal(SIGSEGV), Not(HasSubstr("warpheap: ")));
}

struct find_signal_stack {
  void operator()(stack_t* found) const { sigaltstack(nullptr, found); }
};

// host.C2
TEST(Crash, AStackForSignalsThatIsThereIsKept) {
  std::thread{[] {
    std::vector<u8> own(64 * 1024);
    stack_t chosen{}, after{};
    chosen.ss_sp = own.data();
    chosen.ss_size = own.size();
    sigaltstack(&chosen, nullptr);
    device_buffer<stack_t> found(1);
    launch({1, 1}, find_signal_stack{}, found.data());
    EXPECT_EQ(found[0].ss_sp, own.data());
    sigaltstack(nullptr, &after);
    EXPECT_EQ(after.ss_sp, own.data());
    chosen.ss_flags = SS_DISABLE;
    sigaltstack(&chosen, nullptr);
  }}.join();
}

}}  // namespace warpheap
