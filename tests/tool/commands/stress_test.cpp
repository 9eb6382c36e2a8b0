// SPDX-License-Identifier: Apache-2.0
// `warpheap stress`, as a process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tool/program_fixture.hpp"

namespace warpheap::tool { namespace {

using nlohmann::json;
using testing::HasSubstr;

class ProgramStress : public program_test {
 protected:
  json document_of(std::string const& options) const {
    auto const made = run("stress --backend host --json - " + options);
    EXPECT_EQ(made.status, 0) << made.err;
    return json::parse(made.out);
  }
};

TEST_F(ProgramStress, FindsNothingWrongWithAnyAllocator) {
  std::string names;
  auto const known = json::parse(run("info --json -").out)["allocators"];
  for (std::string const name : known) names += (names.empty() ? "" : ",") + name;
  auto const document = document_of("--rounds 6 --pool 2MiB --threads 64 --misuse --allocator " + names);
  EXPECT_EQ(document["schema"], 1);
  EXPECT_EQ(document["verified"], true);
  ASSERT_EQ(document["results"].size(), known.size());
  for (auto const& row : document["results"]) {
    EXPECT_EQ(row["rounds"], 6) << row;
    EXPECT_EQ(row["verified"], true) << row;
    for (auto const* const call : {"malloc", "calloc", "realloc", "free", "free_handed_over"})
      EXPECT_GT(row["calls"][call], 0) << row;
    auto const lacks = [&](char const* part) {
      return std::find(row["left_out"].begin(), row["left_out"].end(), part) != row["left_out"].end();
    };
    for (auto const* const call : {"aligned_alloc", "malloc_warp"})
      EXPECT_EQ(row["calls"][call] == 0, lacks(call)) << row;
    EXPECT_EQ(row["calls"]["free_misuse"] == 0, lacks("misuse")) << row;
    for (auto const& [kind, number] : row["faults"].items()) EXPECT_EQ(number, 0) << kind << row;
    EXPECT_GT(row["verified_bytes"], 0);
    EXPECT_FALSE(row.contains("fault"));
  }
  EXPECT_EQ(document["results"][0]["left_out"], json::array());
  EXPECT_THAT(document["results"][1]["left_out"], testing::Contains("exact slots")) << "the toolkit's";
}

TEST_F(ProgramStress, GrowsAPoolUnderItsKernelsAndTellsHowFar) {
  auto const document = document_of("--grow --misuse --rounds 60 --threads 64 --pool 15MiB");
  EXPECT_EQ(document["grow"], true);
  EXPECT_EQ(document["verified"], true);
  auto const growth = document["results"][0]["growth"];
  EXPECT_EQ(growth["initial_bytes"], 2 << 20) << "1 MiB, in whole chunks";
  EXPECT_EQ(growth["limit_bytes"], 16 << 20) << "in whole chunks";
  EXPECT_EQ(growth["most_bytes"], growth["limit_bytes"]);
  EXPECT_EQ(growth["least_bytes"], growth["initial_bytes"]);
  EXPECT_GT(growth["growths"], 0);
  EXPECT_GT(growth["trims"], 0);
  EXPECT_FALSE(document_of("--rounds 1")["results"][0].contains("growth"));
  EXPECT_THAT(run("stress --backend host --grow --rounds 9").out, HasSubstr("slab_bitmap grew "));
}

TEST_F(ProgramStress, EndsInTime) {
  auto const row = document_of("--minutes 0.003 --threads 64 --streams 1")["results"][0];
  EXPECT_GT(row["rounds"], 1);
  EXPECT_GE(row["seconds"], 0.18);
}

TEST_F(ProgramStress, TheSameSeedMakesTheSameCallsOneLaneAtATime) {
  auto const row_of = [&](std::string const& seed) {
    auto row = document_of("--deterministic --rounds 2 --threads 32 --pool 1MiB --seed " + seed)["results"][0];
    row.erase("seconds");
    return row;
  };
  EXPECT_EQ(row_of("3"), row_of("3"));
  EXPECT_NE(row_of("3"), row_of("4"));
}

TEST_F(ProgramStress, PrintsWhatItKnowsWhenItIsInterrupted) {
  auto const file = (folder / "s.json").string();
  auto const made = run_interrupted("stress --backend host --threads 64 --minutes 10 --json " + file);
  EXPECT_EQ(made.status, 130);
  EXPECT_THAT(made.out, HasSubstr("slab_bitmap"));
  auto const document = json::parse(contents(file));
  EXPECT_EQ(document["interrupted"], true);
  auto const row = document["results"][0];
  EXPECT_GT(row["rounds"], 0);
  EXPECT_EQ(row["verified"], true);
}

TEST_F(ProgramStress, TellsOfGrowthWhenItIsInterrupted) {
  auto const made = run_interrupted("stress --backend host --grow --threads 64 --minutes 10");
  EXPECT_EQ(made.status, 130);
  EXPECT_THAT(made.out, HasSubstr("slab_bitmap grew "));
}

TEST_F(ProgramStress, RefusesWhatItCannotDo) {
  expect_refusal("stress --rounds 0", "--rounds: 0 is not between 1");
  expect_refusal("stress --minutes 0", "--minutes: 0 is not between 0.0001 and 1000000");
  expect_refusal("stress --streams 17", "--streams: 17 is not between 1 and 16");
  expect_refusal("stress --threads 31", "--threads: 31 is not between 32 and 4194304");
  expect_refusal("stress --backend host --allocator nobody", "no allocator is called 'nobody'");
  expect_refusal("stress --backend host --grow --allocator slab_bitmap,scatter", "the pool of 'scatter' cannot grow");
  expect_refusal("stress --backend host --grow --deterministic", "not with --deterministic");
  expect_refusal("stress --backend host --pool 1000", "--pool: '1000' is less than 1 MiB");
}

}}  // namespace warpheap::tool
