// SPDX-License-Identifier: Apache-2.0
// The table of bench's options says which scenarios use them. Each entry is compared with what the
// scenario does when the option changes, and with what the program refuses.
#include "commands/bench_options.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>
#include <set>
#include <tuple>

#include "backend/backend.hpp"
#include "cli/usage_error.hpp"
#include "scenarios/scenario.hpp"
#include "tests/tool/program_fixture.hpp"

namespace warpheap::tool { namespace {

using testing::HasSubstr;

bench_option const& option_called(std::string const& name) {
  for (auto const& option : bench_options())
    if (option.name == name) return option;
  throw std::out_of_range{name};
}

/// Options of a short run of the scenario, whose rows show every option that it uses.
typed_options short_options_of(std::string const& scenario) {
  // Kernels: as many as fill_level makes without.
  auto typed = options_of_line(
      "--pool 2MiB --repeat 2 --threads 300 --rounds 4 --sizes 1024 --ranges 256-1024 --workers 40 --thread-blocks 32 "
      "--batch 16 --readers-per-writer 4 --divergence warp --levels 0.5 --left-shares 0.5 --page-shares 0.5 "
      "--kernels 16 --scale 6");
  // As many as without.
  if (scenario == "growth" || scenario == "efficiency") typed["--kernels"] = "8";
  // These take long where a pool has many blocks.
  if (scenario == "growth") {
    typed["--pool"] = "32MiB";  // its least is more than 2 MiB
    typed["--ranges"] = "2048-8192";
  }
  if (scenario == "efficiency") typed["--pool"] = "1MiB";
  if (scenario == "fragmentation") {
    typed["--sizes"] = "8192";
    typed["--ranges"] = "1024-4096";
  }
  // Enough that the pool is as large as it may be.
  if (scenario == "exhaust" || scenario == "fill_level" || scenario == "long_churn" || scenario == "map")
    typed["--threads"] = "4000";
  return typed;
}

/// Another value of each option.
typed_options const changes = options_of_line(
    "--pool 1536KiB --sizes 512 --ranges 512-2048 --threads 200 --workers 50 --thread-blocks 8 --batch 8 --batch-ns 5 "
    "--readers-per-writer 8 --divergence thread --allocate-shares 0.9,0.5 --free-shares 0.5,0.9 --levels 0.25 "
    "--left-shares 0.25 --page-shares 0.25 --kernels 30 --seconds 0.2 --scale 7 --gpus 0,0,0 --rounds 5 --repeat 3");

/// A request with all of these, also those that no scenario but others uses.
bench::request request_of(backend const& on, typed_options const& typed) {
  bench::request asked;
  asked.pool_bytes = parse_bytes("--pool", typed.at("--pool"));
  for (auto const& scenario : bench::scenarios_of(on)) add_values(asked, scenario, typed, {});
  return asked;
}

using shape = std::vector<std::tuple<std::string, std::vector<std::pair<std::string, u64>>, size_t>>;

/// The rows without the measurements: operations, parameters, and how many times there are.
shape shape_of(backend const& on, std::string const& scenario, bench::request const& asked) {
  shape made;
  for (auto const& row : rows_of(bench::scenario_called(scenario, on),
                                 {scenario == "head_replacement" ? "halloc" : "slab_bitmap"}, asked)) {
    EXPECT_EQ(row.fault, "") << scenario;
    made.emplace_back(row.operation, row.parameters, row.times_us.size());
  }
  return made;
}

shape without_times(shape rows) {
  for (auto& row : rows) std::get<2>(row) = 0;
  return rows;
}

/// Whether the rows of `scenario` are others than `before`, those of its request, once the options
/// `names` of that have changed.
bool changes_rows(backend const& on, std::string const& scenario, shape const& before,
                  std::vector<std::string> const& names) {
  auto typed = short_options_of(scenario);
  for (auto const& name : names) typed[name] = changes.at(name);
  // long_churn takes --kernels first.
  if (names == std::vector<std::string>{"--seconds"}) typed.erase("--kernels");
  auto const after = shape_of(on, scenario, request_of(on, typed));
  // crowd leaves out rounds of a slow machine.
  bool const with_times = scenario != "crowd" || names == std::vector<std::string>{"--repeat"};
  return with_times ? before != after : without_times(before) != without_times(after);
}

TEST(BenchOptions, AreUsedByTheScenariosOfTheTableAndByNoOther) {
  auto const on = make_host_backend();
  for (auto const& each : bench::scenarios_of(*on)) {
    auto const& scenario = each.name;
    EXPECT_EQ(option_called("--allocator").is_used_by(scenario), each.measures_allocators()) << scenario;
    auto const before = shape_of(*on, scenario, request_of(*on, short_options_of(scenario)));
    std::vector<std::string> unused;
    for (auto const& [name, value] : changes) {
      if (scenario == "placement" && name == "--ranges") continue;  // its rows do not say
      if (!option_called(name).is_used_by(scenario)) unused.push_back(name);
      else EXPECT_TRUE(changes_rows(*on, scenario, before, {name})) << scenario << " " << name;
    }
    // All at once, which is one run.
    EXPECT_FALSE(changes_rows(*on, scenario, before, unused)) << scenario << " " << testing::PrintToString(unused);
  }
}

TEST(BenchOptions, NameScenariosThatThereAre) {
  auto const scenarios = bench::scenarios_of(*make_host_backend());
  auto const known = names_of(scenarios);
  std::set<std::string> options;
  for (auto const& option : bench_options()) {
    EXPECT_TRUE(options.insert(option.name).second) << option.name << " twice";
    EXPECT_TRUE(option.name == "--allocator" || changes.count(option.name)) << option.name;
    std::set<std::string> named;
    for (auto const& group : option.groups)
      for (auto const& scenario : group.scenarios) {
        EXPECT_THAT(known, testing::Contains(scenario)) << option.name;
        EXPECT_TRUE(named.insert(scenario).second) << option.name << " " << scenario << " twice";
        if (option.text.empty()) continue;
        EXPECT_THAT(option.help(), HasSubstr(scenario)) << option.name;
      }
  }
  EXPECT_EQ(std::set<std::string>(known.begin(), known.end()).size(), known.size()) << "two of one name";
  for (auto const& scenario : scenarios) {
    for (auto const& used : scenario.uses)
      EXPECT_EQ(options.count(used.option.name), 1u) << scenario.name << " " << used.option.name;
    for (auto const& ignored : scenario.ignores) EXPECT_TRUE(option_called(ignored).is_of_others) << scenario.name;
  }
}

/// A value that the option takes, also if it is its default.
std::string value_of(bench_option const& option) {
  if (!option.initial.empty()) return option.initial;
  std::map<std::string, std::string> const values{
      {"--allocator", "slab_bitmap"}, {"--pool", "2MiB"},  {"--sizes", "64"},        {"--ranges", "16-64"},
      {"--divergence", "warp"},       {"--levels", "0.5"}, {"--left-shares", "0.5"}, {"--page-shares", "0.5"},
      {"--seconds", "0.5"},           {"--gpus", "0,0"},   {"--scale", "8"}};
  auto const at = values.find(option.name);
  return at == values.end() ? "32" : at->second;
}

using BenchRefusals = program_test;

TEST_F(BenchRefusals, AreOfEveryOptionThatAScenarioDoesNotUse) {
  for (auto const& scenario : names_of(bench::scenarios_of(*make_host_backend())))
    for (auto const& option : bench_options()) {
      bench_flags flags;
      option.typed(flags) = value_of(option);
      if (option.is_used_by(scenario)) {
        EXPECT_NO_THROW(refuse_unused(flags, {scenario})) << scenario << " " << option.name;
      } else {
        expect_refusal(fmt::format("bench {} --backend host {} {}", scenario, option.name, value_of(option)),
                       fmt::format("warpheap bench: {}: {} does not use it; ", option.name, scenario));
      }
    }
}

TEST_F(BenchRefusals, NameTheScenariosThatUseTheOption) {
  expect_refusal(
      "bench churn --sizes 64 --backend host",
      "warpheap bench: --sizes: churn does not use it; burst, fill, exhaust, utilisation, latency, workers, "
      "policy_overhead, two_phase, scaling, head_replacement, placement, arena, bounds, growth, peers, tracing, crowd "
      "and fragmentation do\n");
  expect_refusal("bench burst churn burst --batch 512 --backend host",
                 "warpheap bench: --batch: burst and churn do not use it; semaphore does\n");
  expect_refusal("bench fill_level --repeat 7 --backend host",
                 "warpheap bench: --repeat: fill_level does not use it; all scenarios but efficiency, fill_level, "
                 "long_churn and map do\n");
}

TEST_F(BenchRefusals, AreOfWhatNoneOfTheScenariosUses) {
  bench_flags flags;
  flags.typed = options_of_line("--sizes 64 --ranges 16-64");
  EXPECT_NO_THROW(refuse_unused(flags, {"burst", "churn"}));
  EXPECT_THROW(refuse_unused(flags, {"burst", "init"}), usage_error);
  EXPECT_THROW(refuse_unused(flags, {"churn", "init"}), usage_error);
}

TEST_F(BenchRefusals, AreNoneWhereNothingIsTyped) {
  auto const made = run("bench init --pool 1MiB --repeat 1 --backend host");
  EXPECT_EQ(made.status, 0) << made.err;
}

}}  // namespace warpheap::tool
