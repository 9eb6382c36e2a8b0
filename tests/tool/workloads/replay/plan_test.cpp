// SPDX-License-Identifier: Apache-2.0
// Plans of traces: which lanes call together, in which order, and where a kernel is cut.
#include "workloads/replay/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>

#include "traces_fixture.hpp"

namespace warpheap::tool { namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

replay_plan planned(std::vector<traced_call> calls) {
  call_trace const trace{.calls = std::move(calls)};
  EXPECT_EQ(fault_of(trace), "");
  return plan_of(trace);
}

/// Thread blocks of each round.
std::vector<u32> thread_blocks_of(replay_plan const& plan) {
  std::vector<u32> blocks;
  for (auto const& round : plan.rounds) blocks.push_back(round.thread_blocks);
  return blocks;
}

TEST(ReplayPlan, KeepsLanesTogetherAndWarpsApart) {
  auto const plan =
      planned({kernel_begins, asks(7, 3), with_them(asks(7, 5)), asks(7, 40), asks(2, 0), frees(7, 3, 1)});
  ASSERT_THAT(plan.rounds, SizeIs(1));
  EXPECT_EQ(plan.rounds[0].thread_blocks, 2u);
  EXPECT_EQ(plan.rounds[0].warps_a_block, 2u);
  ASSERT_THAT(plan.warps, SizeIs(4));  // of thread blocks 2 and 7
  EXPECT_EQ(plan.warps[0].steps, 1u);
  EXPECT_EQ(plan.warps[1].steps, 0u);
  EXPECT_EQ(plan.warps[2].steps, 2u);
  EXPECT_EQ(plan.warps[3].steps, 1u);
  auto const& first = plan.steps[plan.warps[2].first_step];
  EXPECT_EQ(first.mask, 1u << 3 | 1u << 5);
  auto const& freed = plan.calls[plan.steps[plan.warps[2].first_step + 1].first_call];
  EXPECT_EQ(freed.kind, call_kind::free);
  EXPECT_EQ(freed.named, plan.calls[first.first_call].made);
  EXPECT_EQ(freed.old_bytes, 64u);
  EXPECT_EQ(plan.blocks, 4u);
  EXPECT_EQ(plan.kernels, 1u);
}

// replay.R1
TEST(ReplayPlan, CutsAKernelBeforeAWarpFreesWhatAnotherMadeInIt) {
  // warp 0 makes two; warp 1 frees one of them, and makes one more; warp 0 frees that one
  EXPECT_THAT(
      thread_blocks_of(planned({kernel_begins, asks(0, 0), asks(0, 0), frees(1, 0, 1), asks(1, 0), frees(0, 0, 4)})),
      ElementsAre(1, 1, 1));
  // warps of one thread block are no different
  EXPECT_THAT(planned({asks(0, 0), frees(0, 32, 0)}).rounds, SizeIs(2));
}

TEST(ReplayPlan, CutsNothingWhereAWarpFreesItsOwnOrWhatIsOlder) {
  EXPECT_THAT(planned({kernel_begins, asks(0, 0), frees(0, 31, 1)}).rounds, SizeIs(1));
  EXPECT_THAT(planned({kernel_begins, asks(0, 0), kernel_begins, frees(1, 0, 1), asks(1, 0)}).rounds, SizeIs(2));
  EXPECT_THAT(planned({kernel_begins, asks(0, 0), kernel_begins, asks(1, 0), frees(1, 0, 1)}).rounds, SizeIs(2));
}

TEST(ReplayPlan, CutsBeforeAllLanesOfAGroup) {
  auto const plan = planned({asks(0, 0), asks(1, 0), frees(1, 0, 1), with_them(frees(1, 1, 0))});
  ASSERT_THAT(plan.rounds, SizeIs(2));
  auto const& last = plan.steps.back();
  EXPECT_EQ(last.mask, 3u) << "lane 0 could have been earlier, and waits with lane 1";
}

// replay.R2
TEST(ReplayPlan, KeepsTheOrderOfTheTraceFromRoundToRound) {
  // warp 0 asks four times, warp 1 frees each: at most one lives, also in the replay
  auto const plan = planned({asks(0, 0), frees(1, 0, 0), asks(0, 0), frees(1, 0, 2), asks(0, 0), frees(1, 0, 4)});
  u64 live = 0, most = 0;
  for (auto const& round : plan.rounds) {
    for (u32 warp = 0; warp < round.thread_blocks * round.warps_a_block; ++warp) {
      auto const mine = plan.warps[round.first_warp + warp];
      for (u32 i = 0; i < mine.steps; ++i)
        live += plan.calls[plan.steps[mine.first_step + i].first_call].kind == call_kind::free ? u64(-1) : 1;
    }
    most = std::max(most, live);
  }
  EXPECT_EQ(live, 0u);
  EXPECT_EQ(most, 1u);
}

TEST(ReplayPlan, SaysBeforeWhichRoundTheHeapIsReset) {
  auto const plan = planned({asks(0, 0), heap_is_reset, kernel_begins, asks(0, 0), asks(0, 0)});
  ASSERT_THAT(plan.rounds, SizeIs(2));
  EXPECT_FALSE(plan.rounds[0].after_reset);
  EXPECT_TRUE(plan.rounds[1].after_reset);
  EXPECT_THAT(planned({kernel_begins, heap_is_reset}).rounds, IsEmpty());
}

/// Where a block is made.
struct maker {
  size_t round = ~size_t{0};
  u32 warp = 0;
};

/// Why a step of a warp cannot be followed; empty if it can.
std::string fault_of_step(std::span<replay_call const> calls, maker const& here, std::vector<maker>& made_in) {
  for (auto const& call : calls) {
    if (call.kind != call_kind::free && call.kind != call_kind::realloc) continue;
    auto const& made = made_in[call.named];
    if (made.round > here.round) return "a block is named before it is made";
    if (made.round == here.round && made.warp != here.warp) return "a warp waits for another";
  }
  for (auto const& call : calls)
    if (call.kind != call_kind::free && !call.refused) made_in[call.made] = here;
  return {};
}

/// Why a plan cannot be followed; empty if it can.
std::string fault_of_plan(replay_plan const& plan) {
  std::vector<maker> made_in(plan.blocks);
  for (size_t r = 0; r < plan.rounds.size(); ++r) {
    auto const& round = plan.rounds[r];
    for (u32 w = 0; w < round.thread_blocks * round.warps_a_block; ++w) {
      auto const mine = plan.warps[round.first_warp + w];
      for (auto const& step : std::span{plan.steps}.subspan(mine.first_step, mine.steps)) {
        auto const calls = std::span{plan.calls}.subspan(step.first_call, popcount(step.mask));
        if (auto fault = fault_of_step(calls, {r, w}, made_in); !fault.empty()) return fault;
      }
    }
  }
  return {};
}

TEST(ReplayPlan, HasEveryCallOfATraceOnceInAnOrderThatNeedsNoWaiting) {
  auto const trace = trace_of_kernels();
  EXPECT_EQ(fault_of(trace), "");
  auto const plan = plan_of(trace);
  EXPECT_EQ(plan.kernels, 4u);
  EXPECT_EQ(plan.rounds.size(), 4u) << "each thread frees its own";
  EXPECT_EQ(plan.calls.size(), trace.calls.size() - 4);
  EXPECT_EQ(fault_of_plan(plan), "");
}

}}  // namespace warpheap::tool
