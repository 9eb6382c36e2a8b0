// SPDX-License-Identifier: Apache-2.0
// A lane that overflows its stack is noticed: a guard page stops it at once. Where there are more
// lanes than guard pages, the lowest word of its stack shows it when the lane ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "warpheap/platform/device_buffer.hpp"

namespace warpheap { namespace {

using testing::HasSubstr;

/// More lanes at a time than the 16,384 that have a guard page.
constexpr launch_shape most_lanes{20, 1024};
constexpr host::execution all_resident{.mode = host::execution_mode::deterministic,
                                       .policy = host::schedule_policy::round_robin,
                                       .sm_count = most_lanes.blocks,
                                       .blocks_per_sm = 1};

struct count_each {
  void operator()(u32* counter) const { atomic_ref<u32>{*counter}.fetch_add(1, order::relaxed); }
};

/// Thread 5 of one thread block stores at an offset from the lowest byte of its stack, as an
/// overflow does on its way.
struct store_on_stack {
  void operator()(u32 block, i64 offset, u32* guarded) const {
    if (simt::block_index() != block || simt::thread_index() != 5) return;
    auto const& stack = *host::detail::this_lane().stack;
    *guarded = stack.guarded;
    *reinterpret_cast<u64 volatile*>(stack.bottom + offset) = 1;
  }
};

TEST(Stack, AnOverflowWithoutAGuardPageIsSeenWhenTheLaneEnds) {
  if (host::detail::under_tsan) GTEST_SKIP() << "ThreadSanitizer allows 8,000 lanes";
  host::scoped_execution const use{all_resident};
  device_buffer<u32> guarded(1), counter(1);
  try {
    launch(most_lanes, store_on_stack{}, most_lanes.blocks - 1, i64{0}, guarded.data());
    ADD_FAILURE() << "no error";
  } catch (host::schedule_error const& error) {
    EXPECT_THAT(error.what(), HasSubstr("thread block 19 thread 5 (warp 0 lane 5) overflowed its stack"));
  }
  EXPECT_EQ(guarded[0], 0u);
  // the backend works, and blames no other lane for what that lane left
  launch(most_lanes, count_each{}, counter.data());
  EXPECT_EQ(counter[0], most_lanes.blocks * most_lanes.threads);
}

TEST(Stack, UsingAllOfAGuardedStackIsNoOverflow) {
  device_buffer<u32> guarded(1);
  launch({1, 32}, store_on_stack{}, 0u, i64{0}, guarded.data());
  EXPECT_EQ(guarded[0], 1u);
}

TEST(StackDeathTest, AnOverflowIntoAGuardPageFaults) {
  if (host::detail::under_asan || host::detail::under_tsan) GTEST_SKIP() << "a sanitizer takes the signal";
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  device_buffer<u32> guarded(1);
  EXPECT_EXIT(launch({1, 32}, store_on_stack{}, 0u, i64{-8}, guarded.data()), testing::KilledBySignal(SIGSEGV), "");
}

}}  // namespace warpheap
