// SPDX-License-Identifier: Apache-2.0
// Suites of `warpheap bench`: their tables, their estimate, and files that are complete or not
// there.
#include "commands/suite.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "tests/tool/program_fixture.hpp"

namespace warpheap::tool {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::vector<std::string> allocator_names() {
  std::vector<std::string> names;
  for (auto const& known : make_host_backend()->allocators()) names.push_back(known.name);
  return names;
}

TEST(SuiteTable, HasScenariosAndAllocatorsThatThereAreOnceEach) {
  auto const allocators = allocator_names();
  auto const scenarios = names_of(make_host_backend()->scenarios());
  for (auto const* const suite : suite_names) {
    std::set<std::string> seen;
    for (auto const& entry : suite_entries(suite, allocators)) {
      EXPECT_THAT(scenarios, testing::Contains(entry.scenario));
      EXPECT_THAT(allocators, testing::IsSupersetOf(entry.allocators)) << entry.scenario;
      EXPECT_TRUE(seen.insert(entry.scenario).second) << entry.scenario << " has one file";
      EXPECT_GT(entry.seconds, 0) << entry.scenario;
    }
  }
}

TEST(SuiteTable, HasAQuickSuiteOfUnderThreeMinutes) {
  double seconds = 0;
  for (auto const& entry : suite_entries("quick", allocator_names())) seconds += entry.seconds;
  EXPECT_LT(seconds, 180);
}

TEST(SuiteEstimate, FollowsTheWeightsOfItsEntriesAndThenTheClock) {
  suite_estimate estimate{{10, 0, 30}};
  EXPECT_EQ(estimate.seconds_left(), 40);
  estimate.note(0, 1, 2, 5);
  EXPECT_EQ(estimate.share(), 0.125);
  EXPECT_DOUBLE_EQ(estimate.seconds_left(), 35) << "as expected so far";
  estimate.note(1, 1, 2, 10);
  EXPECT_EQ(estimate.share(), 0.25);
  estimate.note(2, 1, 2, 50);
  EXPECT_DOUBLE_EQ(estimate.share(), 0.625);
  EXPECT_GT(estimate.seconds_left(), 15) << "slower than expected";
  estimate.note(2, 3, 2, 60);
  EXPECT_EQ(estimate.share(), 1);
  EXPECT_EQ(estimate.seconds_left(), 0);
  EXPECT_EQ((suite_estimate{{0, 0}}.seconds_left()), 0);
}

class Suite : public program_test {
 protected:
  std::string command(std::string const& more) const {
    return "bench --backend host --suite quick --allocator slab_bitmap --output " + results().string() + " " + more;
  }
  std::filesystem::path results() const { return folder / "a" / "results"; }
  json document(char const* scenario) const {
    return json::parse(contents(results() / (std::string{scenario} + ".json")));
  }
};

TEST_F(Suite, WritesAFileForEachScenario) {
  auto const made = run(command("latency churn"));
  ASSERT_EQ(made.status, 0) << made.err;
  for (auto const* const scenario : {"latency", "churn"}) {
    auto const found = document(scenario);
    EXPECT_EQ(found["schema"], 1);
    EXPECT_EQ(found["suite"], "quick");
    EXPECT_EQ(found["backend"], "host");
    EXPECT_EQ(found["machine"]["commit"].is_string(), true);
    ASSERT_GE(found["results"].size(), 1u);
    for (auto const& row : found["results"]) EXPECT_EQ(row["scenario"], scenario);
    EXPECT_THAT(made.out, HasSubstr(std::string{scenario} + ".json: "));
  }
}

TEST_F(Suite, GoesOnFromTheFilesThatAreComplete) {
  ASSERT_EQ(run(command("latency")).status, 0);
  auto const path = results() / "latency.json";
  auto const time = std::filesystem::last_write_time(path);
  auto const more = run(command("latency churn"));
  EXPECT_THAT(more.out, AllOf(HasSubstr("latency.json: complete"), HasSubstr("churn.json: ")));
  EXPECT_EQ(std::filesystem::last_write_time(path), time);
  EXPECT_THAT(run(command("latency --fresh")).out, Not(HasSubstr("complete")));
  EXPECT_NE(std::filesystem::last_write_time(path), time);
}

TEST_F(Suite, MeasuresAgainWhatIsOfAnotherMachineOrOtherwiseMade) {
  ASSERT_EQ(run(command("latency")).status, 0);
  auto const path = results() / "latency.json";
  auto const sound = document("latency");
  auto const is_kept_with = [&](auto change) {
    auto changed = sound;
    change(changed);
    std::ofstream{path} << changed.dump();
    return run(command("latency")).out.find("complete") != std::string::npos;
  };
  EXPECT_TRUE(is_kept_with([](json& made) { made["machine"]["time"] = "another"; }));
  EXPECT_FALSE(is_kept_with([](json& made) { made["machine"]["commit"] = "another"; }));
  EXPECT_FALSE(is_kept_with([](json& made) { made["machine"] = nullptr; }));
  EXPECT_FALSE(is_kept_with([](json& made) { made["seed"] = 2; }));
  EXPECT_FALSE(is_kept_with([](json& made) { made["suite"] = "full"; }));
  EXPECT_FALSE(is_kept_with([](json& made) { made["allocators"].push_back("scatter"); }));
  EXPECT_FALSE(is_kept_with([](json& made) { made["pool_bytes"] = 1; }));
  EXPECT_FALSE(is_kept_with([](json& made) { made["results"][0]["checked"] = false; }));
  for (json const& odd : {json("yes"), json(nullptr), json(1), json::array()})
    EXPECT_FALSE(is_kept_with([&](json& made) { made["results"][0]["checked"] = odd; })) << odd;
  EXPECT_FALSE(is_kept_with([](json& made) { made.erase("results"); }));
  EXPECT_FALSE(is_kept_with([](json& made) { made = json::array(); }));
  std::ofstream{path} << sound.dump().substr(0, 100);
  EXPECT_THAT(run(command("latency")).out, Not(HasSubstr("complete")));
}

TEST_F(Suite, LeavesOnlyCompleteFilesWhenItIsInterrupted) {
  auto const arguments = "bench --backend host --suite full --output " + results().string();
  auto const made = run_interrupted(arguments + " latency burst mixed");
  EXPECT_THAT(made.err, HasSubstr("are complete; the same command goes on from there"));
  for (auto const& file : std::filesystem::directory_iterator{results()}) {
    EXPECT_EQ(file.path().extension(), ".json") << "no half-written file";
    EXPECT_TRUE(json::parse(contents(file.path()))["results"].is_array());
  }
}

TEST_F(Suite, RefusesWhatItHasNoUseFor) {
  expect_refusal("bench --suite slow", "--suite: 'slow' is none of quick, full");
  expect_refusal("bench --suite quick --sizes 16", "--sizes: a suite has options of its own");
  expect_refusal("bench --suite quick --json -", "--json: a suite writes a file for each scenario");
  expect_refusal("bench --suite quick tracing", "--suite: quick has none of tracing");
  expect_refusal("bench --suite quick nothing", "no scenario is called 'nothing'");
  expect_refusal("bench --suite quick --output " + write("file", ""), "--output: cannot make ");
  expect_refusal("bench latency --output x", "--output: is of --suite");
  expect_refusal("bench latency --fresh", "--fresh: is of --suite");
}

}  // namespace
}  // namespace warpheap::tool
