// SPDX-License-Identifier: Apache-2.0
// How long the three pauses of a wait loop may be, on the clock of deterministic mode.
#include <gtest/gtest.h>

#include <algorithm>

#include "warpheap/platform/backoff.hpp"
#include "warpheap/platform/device_buffer.hpp"

namespace warpheap { namespace {

constexpr u32 turns = 4096;

/// Kernel of one lane: the clocks of each turn of `Pause`.
template <void (backoff::*Pause)()>
struct time_turns {
  void operator()(u32* clocks) const {
    backoff wait{32, 1024};
    for (u32 i = 0; i < turns; ++i) {
      u64 const begin = simt::clock();
      (wait.*Pause)();
      clocks[i] = static_cast<u32>(simt::clock() - begin);
    }
  }
};

template <void (backoff::*Pause)()>
std::vector<u32> times() {
  host::scoped_execution const use{{.mode = host::execution_mode::deterministic}};
  device_buffer<u32> clocks(turns);
  launch({1, 1}, time_turns<Pause>{}, clocks.data());
  return clocks.to_host();
}

constexpr u32 slack = 64;  // steps of the schedule itself

TEST(Backoff, AfterARaceWaitsForUpToEightClocksARaceLost) {
  auto const clocks = times<&backoff::after_race>();
  for (u32 i = 0; i < turns; ++i) ASSERT_LE(clocks[i], std::min(32 + 8 * (i + 1), 8192u) + slack) << i;
  // Threads that lost as often do not come back together.
  EXPECT_GT(*std::max_element(clocks.begin(), clocks.end()), 4096u);
  EXPECT_LT(*std::min_element(clocks.end() - 1024, clocks.end()), 512u);
}

TEST(Backoff, WhileAnotherWorksSpinsForALittleAndThenNapsForRandomTimesAroundTheLimit) {
  auto const clocks = times<&backoff::while_working>();
  for (u32 i = 0; i < 4; ++i) EXPECT_LE(clocks[i], (32u << i) + slack);
  for (u32 i = 6; i < turns; ++i) {
    ASSERT_GE(clocks[i], 512u);
    ASSERT_LE(clocks[i], 1536 + slack);
  }
  EXPECT_LT(*std::min_element(clocks.begin() + 6, clocks.end()), 640u);
  EXPECT_GT(*std::max_element(clocks.begin() + 6, clocks.end()), 1408u);
}

TEST(Backoff, ForLongNapsDoubleUpToTheLimit) {
  auto const clocks = times<&backoff::for_long>();
  for (u32 i = 0; i < turns; ++i) {
    u32 const wanted = i < 5 ? 32u << i : 1024;
    ASSERT_GE(clocks[i], wanted);
    ASSERT_LE(clocks[i], wanted + slack);
  }
}

}}  // namespace warpheap
