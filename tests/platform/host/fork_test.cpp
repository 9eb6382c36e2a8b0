// SPDX-License-Identifier: Apache-2.0
// A process that has launched kernels forks: its child launches, crashes and ends as any process
// (host.F1). GoogleTest's death tests are such children.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <thread>

#include "warpheap/platform/device_buffer.hpp"

namespace fork_test {

using namespace warpheap;

using testing::ExitedWithCode;
using testing::HasSubstr;
using testing::KilledBySignal;

struct count_lanes {
  void operator()(u32* counter) const { atomic_ref<u32>{*counter}.fetch_add(1, order::relaxed); }
};
struct trap_one {
  void operator()() const {
    if (global_thread_index() == 70) simt::trap("on purpose");
  }
};
struct crash_one_lane {
  void operator()(u32 volatile* where) const {
    if (global_thread_index() == 70) *where = 1;
  }
};
struct wait_for_word {
  void operator()(u32* word) const {
    while (atomic_ref<u32, scope::system>{*word}.load(order::relaxed) == 0) simt::pause(1000);
  }
};

constexpr launch_shape some_blocks{8, 64};

u32 lanes_of_a_launch() {
  device_buffer<u32> counter(1);
  launch(some_blocks, count_lanes{}, counter.data());
  return counter[0];
}

/// Parallel mode with OS threads that exist when the process forks.
class ForkDeathTest : public testing::TestWithParam<char const*> {
 protected:
  void SetUp() override {
    if (host::detail::under_tsan) GTEST_SKIP() << "ThreadSanitizer lets no child of several threads make threads";
    testing::FLAGS_gtest_death_test_style = GetParam();
    ASSERT_EQ(lanes_of_a_launch(), 512u);
  }
  host::scoped_execution use{{.os_threads = 4}};
};

TEST_P(ForkDeathTest, TheChildLaunchesAndEnds) {
  auto const body = [] {
    alarm(20);
    u32 const first = lanes_of_a_launch();
    std::exit(first == 512 && lanes_of_a_launch() == 512 ? 42 : 1);
  };
  EXPECT_EXIT(body(), ExitedWithCode(42), "");
  EXPECT_EXIT(std::exit(43), ExitedWithCode(43), "") << "without a launch";
  EXPECT_EQ(lanes_of_a_launch(), 512u) << "in the parent";
}

TEST_P(ForkDeathTest, AKernelThatTrapsOrCrashesEndsTheChild) {
  auto const trap = [] {
    try {
      launch(some_blocks, trap_one{});
    } catch (host::trap_error const& error) {
      std::fputs(error.what(), stderr);
      std::abort();
    }
  };
  EXPECT_EXIT(trap(), KilledBySignal(SIGABRT), HasSubstr("on purpose (thread block 1, thread 6)"));
  if (host::detail::under_asan) return;  // takes the signal
  EXPECT_EXIT(launch(some_blocks, crash_one_lane{}, static_cast<u32 volatile*>(nullptr)), KilledBySignal(SIGSEGV),
              HasSubstr("warpheap: thread block 1 thread 6 (warp 0 lane 6) crashed"));
}

INSTANTIATE_TEST_SUITE_P(Styles, ForkDeathTest, testing::Values("fast", "threadsafe"),
                         [](auto const& style) { return std::string{style.param}; });

/// Exits with 44 if a launch is refused, and says why.
[[noreturn]] void launch_in_child() {
  alarm(20);
  try {
    _exit(lanes_of_a_launch() == 512 ? 42 : 1);
  } catch (backend_error const& error) {
    std::fputs(error.what(), stderr);
    _exit(44);
  }
}

/// A kernel of another host thread that runs until the test says so.
class ForkDuringAKernelDeathTest : public ForkDeathTest {
 protected:
  void start_kernel() {
    other_ = std::thread{[this] { launch({1, 1}, wait_for_word{}, word_.data()); }};
    std::this_thread::sleep_for(std::chrono::milliseconds{50});
  }
  void end_kernel() { atomic_ref<u32>{*word_.data()}.store(1, order::relaxed); }
  void TearDown() override {
    if (other_.joinable()) other_.join();
  }

 private:
  device_buffer<u32> word_{1};
  std::thread other_;
};

TEST_P(ForkDuringAKernelDeathTest, ForkWaitsForAKernelThatEnds) {
  start_kernel();
  std::thread end{[this] {
    std::this_thread::sleep_for(std::chrono::milliseconds{100});
    end_kernel();
  }};
  EXPECT_EXIT(launch_in_child(), ExitedWithCode(42), "");
  end.join();
}

TEST_P(ForkDuringAKernelDeathTest, TheChildRefusesToLaunchIfItDoesNot) {
  start_kernel();
  EXPECT_EXIT(launch_in_child(), ExitedWithCode(44), HasSubstr("fork when no kernel runs"));
  end_kernel();
}

INSTANTIATE_TEST_SUITE_P(Styles, ForkDuringAKernelDeathTest, testing::Values("fast"));

}  // namespace fork_test
