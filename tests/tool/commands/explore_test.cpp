// SPDX-License-Identifier: Apache-2.0
// `warpheap explore`, as a process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tool/program_fixture.hpp"

namespace warpheap::tool { namespace {

using testing::HasSubstr;

class ProgramExplore : public program_test {
 protected:
  nlohmann::json explored(std::string const& options) const {
    auto const made = run("explore --json - " + options);
    EXPECT_EQ(made.status, 0) << made.err;
    return nlohmann::json::parse(made.out);
  }
};

TEST_F(ProgramExplore, ASearchEndsAndSaysHowManySchedulesItTried) {
  auto const one = explored("--lanes 2 --slabs 1 --calls 8 --sizes 8192,64 --seed 1 --preemptions 1");
  ASSERT_EQ(one["results"].size(), 1u);
  EXPECT_EQ(one["results"][0]["allocator"], "slab_bitmap");
  EXPECT_EQ(one["results"][0]["ended"], true);
  EXPECT_EQ(one["results"][0]["fault"], nullptr);
  auto const two = explored("--lanes 2 --slabs 1 --calls 8 --sizes 8192,64 --seed 1 --preemptions 2");
  EXPECT_GT(two["results"][0]["states"], one["results"][0]["states"]);
  EXPECT_EQ(two["preemptions"], 2);
}

TEST_F(ProgramExplore, DrawsAsManySchedulesAsItIsTold) {
  auto const drawn = explored("--allocator slab_bitmap,scatter --schedules 150 --weak-memory");
  ASSERT_EQ(drawn["results"].size(), 2u);
  for (auto const& row : drawn["results"]) {
    EXPECT_EQ(row["schedules"], 150);
    EXPECT_EQ(row["programs"], 2);
    EXPECT_EQ(row["ended"], false);
  }
  EXPECT_EQ(explored("--minutes 0.002 --calls 1")["results"][0]["fault"], nullptr);
}

TEST_F(ProgramExplore, ExecutesOneScheduleAgain) {
  auto const again = explored("--seed 2 --replay 1@3:1");
  EXPECT_EQ(again["results"][0]["schedules"], 1);
  EXPECT_EQ(again["results"][0]["fault"], nullptr);
}

// The signal was looked at only in programs that took a fifth of a second, and the table was lost.
TEST_F(ProgramExplore, EndsSoonAndPrintsItsTableWhenItIsInterrupted) {
  auto const made = run_interrupted("explore --minutes 10");
  EXPECT_EQ(made.status, 130);
  EXPECT_THAT(made.out, HasSubstr("slab_bitmap"));
}

TEST_F(ProgramExplore, RefusesWhatItCannotDo) {
  expect_refusal("explore --preemptions 1 --schedules 4", "--preemptions searches every schedule");
  expect_refusal("explore --preemptions 1 --weak-memory", "searches schedules without");
  expect_refusal("explore --preemptions 16", "is not between 0 and 15");
  expect_refusal("explore --lanes 17", "is not between 1 and 16");
  expect_refusal("explore --replay 3:1", "is not of the form SEED@DECISION:LANE");
  expect_refusal("explore --schedules 1 --allocator toolkit", "nothing can be looked at in toolkit");
}

}}  // namespace warpheap::tool
