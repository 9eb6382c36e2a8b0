// SPDX-License-Identifier: Apache-2.0
// Suites of `warpheap bench`: their tables, their estimate, and files that are complete or not
// there.
#include "commands/suite.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <tuple>

#include "commands/bench_options.hpp"
#include "scenarios/scenario.hpp"
#include "tests/tool/program_fixture.hpp"
#include "workloads/join/settings.hpp"

namespace warpheap::tool { namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::vector<std::string> allocator_names() {
  std::vector<std::string> names;
  for (auto const& known : make_host_backend()->allocators()) names.push_back(known.name);
  return names;
}

/// Names that the entry's scenario, or its workload, takes.
std::vector<std::string> names_taken_by(suite_entry const& entry) {
  auto const on = make_host_backend();
  auto names = allocator_names();
  auto const add = [&](auto const& more) { names.insert(names.end(), std::begin(more), std::end(more)); };
  if (entry.scenario == "join") {
    add(join_walks);
    add(std::vector<std::string>{direct_output, direct_output_by_warp});
  }
  if (entry.scenario == "pic") add(variant_names(*on));
  for (auto const& scenario : bench::scenarios_of(*on))
    if (scenario.name == entry.scenario && scenario.measures_variants) add(variant_names(*on));
  return names;
}

/// Whether a suite may give the option to the entry's scenario, or to its workload.
bool is_taken(std::string const& option, suite_entry const& entry) {
  if (entry.workload) return option == "--pool";
  for (auto const& known : bench_options())
    if (known.name == option) return known.is_used_by(entry.scenario);
  return false;
}

TEST(SuiteTable, HasScenariosAndAllocatorsThatThereAreAndAFileForEachEntry) {
  auto const scenarios = names_of(bench::scenarios_of(*make_host_backend()));
  for (auto const* const suite : suite_names) {
    std::set<std::string> files;
    for (auto const& entry : suite_entries(suite, allocator_names())) {
      if (entry.workload) EXPECT_THAT(entry.scenario, testing::AnyOf("pic", "join"));
      else EXPECT_THAT(scenarios, testing::Contains(entry.scenario));
      for (auto const& [option, value] : options_of_line(entry.options))
        EXPECT_TRUE(is_taken(option, entry)) << entry.name << " " << option;
      EXPECT_THAT(names_taken_by(entry), testing::IsSupersetOf(entry.allocators)) << entry.name;
      EXPECT_TRUE(files.insert(entry.name).second) << entry.name << " is one file";
      EXPECT_GT(entry.seconds, 0) << entry.name;
      // A process that measures it is asked for by its name, which must not be that of others, too.
      if (suite == std::string{"papers"} && testing::Value(entry.allocators, testing::Contains("toolkit")))
        EXPECT_NE(entry.name, entry.scenario);
    }
  }
}

TEST(SuiteTable, HasNoTwoEntriesThatMeasureTheSame) {
  std::set<std::string> seen;
  for (auto const& entry : suite_entries("papers", allocator_names())) {
    if (entry.workload) continue;
    auto const what = testing::PrintToString(std::tuple{entry.scenario, entry.allocators, entry.options});
    EXPECT_TRUE(seen.insert(what).second) << entry.name;
  }
}

// Each configuration has a name for a figure.
TEST(SuiteTable, MeasuresEveryConfigurationOfThePapers) {
  std::set<std::string> measured;
  for (auto const& entry : suite_entries("papers", allocator_names()))
    measured.insert(entry.allocators.begin(), entry.allocators.end());
  for (auto const& name : variant_names(*make_host_backend())) EXPECT_EQ(measured.count(name), 1u) << name;
}

TEST(SuiteTable, HasAPapersSuiteOfUnderAnHour) {
  double seconds = 0;
  for (auto const& entry : suite_entries("papers", allocator_names())) seconds += entry.seconds;
  EXPECT_LT(seconds, 3600);
}

/// Files that the pages cite until the suite has been run, and the entry that has their rows; ""
/// where no entry can: checks of correctness, and variants of the code.
std::map<std::string, std::string> const files_of_other_names{
    {"verify", ""},
    {"scaling-all", "scaling"},
    {"halloc-variants", "scaling"},
    {"halloc-rows-fragmentation", "fragmentation"},
    {"fragmentation-others", "fragmentation"},
    {"fill-level-others", "fill-level"},
    {"waits", ""},
    {"halloc-work", ""},
    {"read-modify-writes", ""},
    {"scatter-work", ""},
    {"exhaust-ualloc", "exhaust"},
    {"exhaust-all", "exhaust"},
    {"exhaust-toolkit-small", "exhaust-toolkit-64"},
    {"throughput-toolkit-16", "burst-toolkit"},
    {"throughput-toolkit-64", "burst-toolkit"},
    {"throughput-toolkit-256", "burst-toolkit"},
    {"throughput-toolkit-1024", "burst-toolkit"},
    {"throughput-toolkit-4096", "burst-toolkit"},
    {"throughput-toolkit-16384", "burst-toolkit"},
    {"rw-malloc-windows", "rw-malloc-scaling"},
    {"rw-malloc-units", "rw-malloc-scaling"},
    {"join-pages", "join"},
    {"queues-by-lane", ""},
    {"rcu-lone-writers", "rcu-delegation"},
    {"rcu-parts", ""},
    {"arenas", ""},
    {"two-phase-original", "two-phase"},
    {"halloc-time", ""},
    {"workers-stalls", ""},
    {"walk-stalls", ""},
};

/// The results that the pages of the papers' figures cite, without the GPU and the ending.
std::set<std::string> cited_files(std::filesystem::path const& sources) {
  std::set<std::string> names;
  std::regex const citation{R"(bench/results/[a-z0-9]+-([a-z0-9-]+)\.json)"};
  for (auto const& page : std::filesystem::directory_iterator{sources / "docs" / "design"}) {
    auto const name = page.path().filename().string();
    if (name.find("20") == std::string::npos || !name.ends_with("_figures.md")) continue;
    auto const text = contents(page.path());
    for (auto at = std::sregex_iterator{text.begin(), text.end(), citation}; at != std::sregex_iterator{}; ++at)
      names.insert((*at)[1]);
  }
  return names;
}

TEST(SuiteTable, HasEveryFileThatThePagesOfThePapersCite) {
  auto const* const sources = std::getenv("WARPHEAP_SOURCES");
  if (!sources) GTEST_SKIP() << "WARPHEAP_SOURCES does not name the tree";
  std::set<std::string> files;
  for (auto const& entry : suite_entries("papers", allocator_names())) files.insert(entry.name);
  auto const cited = cited_files(sources);
  EXPECT_GT(cited.size(), 20u);
  for (auto const& name : cited) {
    if (files.count(name)) continue;
    auto const other = files_of_other_names.find(name);
    ASSERT_NE(other, files_of_other_names.end()) << name << " is no file of the suite";
    if (!other->second.empty()) EXPECT_EQ(files.count(other->second), 1u) << other->second;
  }
  for (auto const& [name, entry] : files_of_other_names)
    EXPECT_EQ(cited.count(name), 1u) << name << " is cited no more";
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

// Of CUDA's heap there is one in a process, so the host backend starts others, too.
TEST_F(Suite, RunsThePapersSuiteOnTheHostAsASampleAndGoesOn) {
  auto const arguments = "bench --backend host --suite papers --output " + results().string();
  auto const made = run(arguments + " exhaust-toolkit-64 exhaust-toolkit-128 two-phase-threads");
  ASSERT_EQ(made.status, 0) << made.err;
  auto const again = run(arguments);
  ASSERT_EQ(again.status, 0) << again.err;
  for (auto const* const done : {"exhaust-toolkit-64", "exhaust-toolkit-128", "two-phase-threads"})
    EXPECT_THAT(again.out, HasSubstr(std::string{done} + ".json: complete"));
  for (auto const& entry : suite_entries("papers", allocator_names())) {
    auto const found = document(entry.name.c_str());
    EXPECT_EQ(found["suite"], "papers") << entry.name;
    ASSERT_GE(found["results"].size(), 1u) << entry.name;
    for (auto const& row : found["results"]) EXPECT_EQ(row["checked"], true) << entry.name;
  }
  EXPECT_EQ(document("exhaust-toolkit-64")["pool_bytes"], document("exhaust-toolkit-128")["pool_bytes"]);
  EXPECT_THAT(run(arguments).out, Not(HasSubstr(" rows in ")));
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
  expect_refusal("bench --suite slow", "--suite: no suite is called 'slow'; there are: quick, papers, full");
  expect_refusal("bench --suite quick --sizes 16", "--sizes: a suite has options of its own");
  expect_refusal("bench --suite quick --json -", "--json: a suite writes a file for each scenario");
  expect_refusal("bench --suite quick tracing", "--suite: quick has none of tracing");
  expect_refusal("bench --suite quick nothing", "no scenario is called 'nothing'");
  expect_refusal("bench --suite quick --output " + write("file", ""), "--output: cannot make ");
  expect_refusal("bench latency --output x", "--output: is of --suite");
  expect_refusal("bench latency --fresh", "--fresh: is of --suite");
}

}}  // namespace warpheap::tool
