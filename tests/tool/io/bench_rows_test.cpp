// SPDX-License-Identifier: Apache-2.0
// The tables that the program prints: how wide they are, what they say once, and that their rates
// count calls that were served.
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "commands/bench_options.hpp"
#include "io/bench_rows.hpp"
#include "tests/tool/program_fixture.hpp"
#include "warpheap/platform/types.hpp"

namespace warpheap::tool { namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using ProgramTables = program_test;

constexpr size_t widest = 120;

/// Lines of `text` that are wider than a terminal's assumed width.
std::string too_wide(std::string const& text) {
  std::istringstream lines{text};
  std::string found;
  for (std::string line; std::getline(lines, line);)
    if (line.size() > widest) found += line + "\n";
  return found;
}

/// Those of some options that `scenario` uses.
std::string options_of(std::string const& scenario) {
  // Where a pool is full, or holds slots, many small blocks take long.
  bool const is_of_slots = scenario == "fill_level" || scenario == "long_churn" || scenario == "map";
  bool const fills = is_of_slots || scenario == "fragmentation" || scenario == "growth" || scenario == "efficiency";
  std::map<std::string, std::string> const values{{"--allocator", "slab_bitmap,halloc,ring_buffer"},
                                                  {"--pool", fills ? "1MiB" : "2MiB"},
                                                  {"--sizes", fills ? "1024,9000" : "64,1024,9000"},
                                                  {"--ranges", fills ? "900-8192" : "16-64,16-9000"},
                                                  {"--threads", "96"},
                                                  {"--workers", "32,96"},
                                                  {"--levels", "0.5,1.5"},
                                                  {"--kernels", is_of_slots ? "10" : "2"},
                                                  {"--rounds", "4"},
                                                  {"--repeat", "1"}};
  std::string typed;
  for (auto const& option : bench_options())
    if (auto const at = values.find(option.name); at != values.end() && option.is_used_by(scenario))
      typed += " " + at->first + " " + at->second;
  return typed;
}

TEST_F(ProgramTables, OfEveryScenarioFit) {
  auto const scenarios = json::parse(run("info --json -").out)["scenarios"];
  ASSERT_GE(scenarios.size(), 17u);
  for (std::string const scenario : scenarios) {
    auto const made = run("bench " + scenario + " --backend host" + options_of(scenario));
    EXPECT_EQ(made.status, 0) << scenario << made.err;
    EXPECT_THAT(made.out, HasSubstr(scenario)) << scenario;
    EXPECT_GE(std::count(made.out.begin(), made.out.end(), '\n'), 4) << scenario;
    EXPECT_EQ(too_wide(made.out), "") << scenario;
  }
}

TEST_F(ProgramTables, OfEveryCommandFit) {
  for (auto const* const arguments :
       {"info", "graph --scale 8 --edge-factor 4 --allocator slab_bitmap,toolkit,halloc",
        "verify --pool 2MiB --allocator slab_bitmap,ring_buffer --sizes 64,9000 --repeat 1",
        "pic --allocator slab_bitmap,ring_buffer --cells 16x8 --steps 2",
        "pic --find-capacity --allocator slab_bitmap,ring_buffer --species 2 --pool 4MiB",
        "join --allocator direct,slab_bitmap,halloc --tuples 0,1000,3000 --probe-tuples 2000 --pool 4MiB"}) {
    auto const made = run(std::string{arguments} + " --backend host");
    EXPECT_EQ(made.status, 0) << arguments << made.err;
    EXPECT_GE(std::count(made.out.begin(), made.out.end(), '\n'), 3) << arguments;
    EXPECT_EQ(too_wide(made.out), "") << arguments;
  }
}

TEST_F(ProgramTables, OfWhatFailedFitAndSayWhy) {
  auto const made = run("join --backend host --pool 1MiB --tuples 80000");
  EXPECT_EQ(made.status, 1);
  EXPECT_EQ(too_wide(made.out), "");
  EXPECT_THAT(made.out, HasSubstr("FAILED: direct, join: out of memory: "));
}

TEST_F(ProgramTables, SayOnceWhatAllRowsShare) {
  auto const made = run("bench burst --backend host --pool 8MiB --threads 96 --repeat 1 --sizes 64,256");
  std::istringstream lines{made.out};
  std::string common, blank, titles;
  std::getline(lines, common);
  std::getline(lines, blank);
  std::getline(lines, titles);
  EXPECT_EQ(common, "burst: threads 96, pool_bytes 8 MiB, failures 0");
  EXPECT_THAT(titles, HasSubstr("bytes"));
  EXPECT_THAT(titles, Not(HasSubstr("threads")));
  EXPECT_THAT(titles, Not(HasSubstr("failures")));
}

TEST(BenchTables, ShowTheQuartilesBesideTheMedian) {
  bench::result made{.scenario = "burst", .allocator = "slab_bitmap", .operation = "malloc", .operations = 1};
  auto const words_of = [&](std::vector<double> const& times) {
    made.times_us = times;
    auto const text = tables_of({made});
    auto const row = text.find("slab_bitmap  malloc ");
    EXPECT_NE(row, text.npos) << text;
    std::istringstream words{text.substr(row)};
    return std::vector<std::string>{std::istream_iterator<std::string>{words}, {}};
  };
  EXPECT_THAT(words_of({90, 10, 30, 40, 50, 60, 20}),
              testing::ElementsAre("slab_bitmap", "malloc", "40.0", "20.0-60.0", "25.0", "k", "0"));
  EXPECT_THAT(words_of({30, 10, 20}), testing::Contains("10.0-30.0")) << "of three, least and most";
  EXPECT_THAT(words_of({10}), Not(testing::Contains(HasSubstr("10.0-")))) << "one time has no spread";
}

/// Calls of a row, of which `failures` were not served.
double calls_of(json const& row) { return row["parameters"].value("calls", row["parameters"].value("threads", 0.0)); }

TEST_F(ProgramTables, RatesCountCallsThatWereServed) {
  auto const made = run(
      "bench burst mixed scaling prefix_sum exhaust policy_overhead latency --backend host --pool 2MiB --threads 700 "
      "--workers 700 --repeat 1 --rounds 4 --sizes 16384 --ranges 16384-16384 --allocator slab_bitmap --json -");
  ASSERT_EQ(made.status, 0) << made.err;
  u64 failing = 0;
  auto const document = json::parse(made.out);
  for (auto const& row : document["results"]) {
    if (row["allocator"] != "slab_bitmap" || row["operation"].get<std::string>().find("malloc") == std::string::npos)
      continue;
    double const failures = row["failures"], served = calls_of(row) - failures;
    EXPECT_NEAR(row["operations_per_second"].get<double>() * row["median_us"].get<double>() * 1e-6, served, 1)
        << row.dump();
    failing += failures > 0;
  }
  EXPECT_GE(failing, 6u) << "128 of 700 blocks fit, at most";
}

}}  // namespace warpheap::tool
