// SPDX-License-Identifier: Apache-2.0
// `warpheap bench`: scenarios one after the other, each with every allocator that was chosen.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench_help.hpp"
#include "bench_options.hpp"
#include "bench_rows_of.hpp"
#include "choices.hpp"
#include "cli/interruption.hpp"
#include "cli/nearest_names.hpp"
#include "cli/progress_bar.hpp"
#include "cli/standard_output.hpp"
#include "command.hpp"
#include "io/bench_rows.hpp"
#include "io/json_output.hpp"
#include "paper_suite.hpp"
#include "scenarios/scenario.hpp"
#include "suite.hpp"

namespace warpheap::tool {

namespace {

using json = nlohmann::ordered_json;

constexpr char const* default_results_folder = "warpheap-results";

/// Refuses configurations of papers where the scenario does not measure them.
void refuse_variants_of(backend const& on, std::string const& scenario, std::vector<std::string> const& allocators) {
  for (auto const& each : bench::scenarios_of(on))
    if (each.name == scenario && each.measures_allocators() && !each.measures_variants) refuse_variants(on, allocators);
}

/// Refuses options that none of these scenarios uses, and pairs that exclude each other.
void refuse_options(bench_flags const& flags, std::vector<std::string> const& scenarios) {
  refuse_unused(flags, scenarios);
  auto typed = flags.typed;
  if (!typed["--kernels"].empty())
    refuse_typed({{"--seconds", typed["--seconds"]}}, "long_churn ends after --kernels, which is given");
}

/// The scenarios that were typed; all of them if none was.
std::vector<bench::scenario> choose_scenarios(backend const& on, std::vector<std::string> const& typed) {
  if (typed.empty()) return bench::scenarios_of(on);
  std::vector<bench::scenario> chosen;
  chosen.reserve(typed.size());
  for (auto const& name : typed) chosen.push_back(bench::scenario_called(name, on));
  return chosen;
}

bench::request parse_request(bench_flags const& flags, choices const& chosen,
                             std::vector<bench::scenario> const& scenarios) {
  bench::request asked;
  asked.seed = chosen.seed;
  bench::option_bounds const bounds{chosen.pool_bytes, chosen.on->device_count(), chosen.on->name()};
  for (auto const& scenario : scenarios) add_values(asked, scenario, flags.typed, bounds);
  return asked;
}

/// The measured rows: all of them, or those that were finished when a signal came.
struct measured {
  std::vector<bench::result> rows;
  int signal = 0;
};

measured measure(choices const& chosen, std::vector<bench::scenario> const& scenarios, bench::request asked,
                 bool pool_is_typed) {
  deferred_interruption const interruption;
  progress_bar bar;
  asked.proceed = [&](std::string const& task, u64 done, u64 total) {
    if (interruption.signal()) return false;
    bar.show(task, done, total);
    return true;
  };
  std::vector<bench::result> rows;
  for (auto const& scenario : scenarios) {
    if (interruption.signal()) break;
    asked.pool_bytes = pool_is_typed ? chosen.pool_bytes : default_pool(chosen, scenario.pool);
    for (auto const& made : rows_of(scenario, chosen.allocators, asked)) rows.push_back(made);
  }
  return {rows, interruption.signal()};
}

/// Ends the program by the signal that came. The finished rows go to standard output alone: in a
/// file they would replace an older result, and pass for the complete one.
[[noreturn]] void end_early(int signal, size_t rows, std::string const& path, json_output const& output,
                            json const& document) {
  if (output.owns_standard_output()) output.write(document);
  auto const fault = output_fault();
  if (!fault.empty()) complain("bench", fault);
  bool const spares_file = !path.empty() && !output.owns_standard_output();
  complain("bench", fmt::format("interrupted with {} row{} finished{}", rows, rows == 1 ? "" : "s",
                                spares_file ? fmt::format("; {} is as it was", path) : ""));
  die_of(signal);
}

void declare_bench(CLI::App& to, bench_flags& flags) {
  auto const scenarios = bench::scenarios_of(*make_host_backend());  // every backend has the same
  to.formatter(std::make_shared<bench_help>(flags));
  to.footer(fmt::format(
      "{}\n`warpheap bench SCENARIO --help` has the options of a scenario alone; an option is refused if none of the "
      "scenarios that are asked for uses it.\n{}",
      scenarios_help(scenarios), bench_notes(scenarios)));
  to.add_option("scenarios", flags.scenarios, "What to measure, as named below (default all of them)")
      ->type_name("SCENARIO");
  add_common_flags(to, flags.common, bench_defaults(scenarios));
  add_text(
      to, "--suite", flags.suite,
      "Measure what a report needs, each scenario with options of its own, to a file each in a folder; what is "
      "complete there is not measured again. quick takes under 3 minutes on an H200, papers, the data of the papers' "
      "figures, under an hour, full much longer",
      "quick|papers|full");
  add_text(to, "--output", flags.output, "The folder of --suite (default warpheap-results)", "FOLDER");
  add_switch(to, "--fresh", flags.fresh, "With --suite: measure what is complete as well");
  for (auto const& option : bench_options())
    if (!option.text.empty())
      add_text(to, option.name.c_str(), option.typed(flags), option.help(), option.type)->default_str(option.initial);
}

/// The entries of the suite that was typed: those of the scenarios that were typed, if any, and of
/// the allocators.
std::vector<suite_entry> entries_of(bench_flags const& flags, choices const& chosen) {
  if (std::find(std::begin(suite_names), std::end(suite_names), flags.suite) == std::end(suite_names))
    throw usage_error{fmt::format("--suite: no suite is called '{}'; {}", flags.suite,
                                  names_instead_of(flags.suite, {std::begin(suite_names), std::end(suite_names)}))};
  std::vector<std::string> all;
  for (auto const& known : chosen.on->allocators()) all.push_back(known.name);
  auto const& typed = flags.scenarios;
  auto const has = [](auto const& names, std::string const& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  std::vector<suite_entry> entries;
  for (auto& entry : suite_entries(flags.suite, all)) {
    if (!typed.empty() && !has(typed, entry.name) && !has(typed, entry.scenario)) continue;
    if (flags.suite == "papers" && chosen.on->name() == "host") entry = sample_of(std::move(entry));
    if (!flags.common.allocators.empty() && !entry.allocators.empty()) {
      if (!entry.workload) refuse_variants_of(*chosen.on, entry.scenario, chosen.allocators);
      entry.allocators = chosen.allocators;
    }
    entries.push_back(std::move(entry));
  }
  for (auto const& name : typed)
    if (std::none_of(entries.begin(), entries.end(),
                     [&](auto const& entry) { return entry.name == name || entry.scenario == name; }))
      choose_scenarios(*chosen.on, {name});  // refuses a name that is none
  if (entries.empty())
    throw usage_error{fmt::format("--suite: {} has none of {}", flags.suite, fmt::join(flags.scenarios, ", "))};
  return entries;
}

/// `bench --suite`.
int run_bench_suite(bench_flags const& flags) {
  refuse_typed({{"--json", flags.common.json}}, "a suite writes a file for each scenario, to --output");
  auto typed = flags;
  for (auto const& option : bench_options())
    if (!option.text.empty())
      refuse_typed({{option.name.c_str(), option.typed(typed)}}, "a suite has options of its own");
  auto const chosen = choose_with_variants(flags.common, bench_host_pool);
  return run_suite(chosen, entries_of(flags, chosen),
                   {.name = flags.suite,
                    .folder = flags.output.empty() ? default_results_folder : flags.output,
                    .fresh = flags.fresh,
                    .pool_is_typed = !flags.common.pool.empty()});
}

int run_bench(bench_flags const& flags) {
  if (!flags.suite.empty()) return run_bench_suite(flags);
  refuse_typed({{"--output", flags.output}, {"--fresh", flags.fresh ? "yes" : ""}},
               "is of --suite, which is not given");
  json_output output{flags.common.json};
  auto const chosen = choose_with_variants(flags.common, bench_host_pool);
  auto const scenarios = choose_scenarios(*chosen.on, flags.scenarios);
  for (auto const& name : names_of(scenarios)) refuse_variants_of(*chosen.on, name, chosen.allocators);
  refuse_options(flags, names_of(scenarios));
  auto const [results, signal] =
      measure(chosen, scenarios, parse_request(flags, chosen, scenarios), !flags.common.pool.empty());

  auto document = new_document(*chosen.on);
  document["backend"] = chosen.on->name();
  document["seed"] = chosen.seed;
  if (signal) document["interrupted"] = true;
  document["results"] = json::array();
  for (auto const& made : results) document["results"].push_back(json_of(made, chosen.on->name()));
  if (!output.owns_standard_output() && !results.empty()) print_output("{}", tables_of(results));
  if (signal) end_early(signal, results.size(), flags.common.json, output, document);
  output.write(document);
  for (auto const& made : results) {
    if (made.checked()) continue;
    complain("bench", fmt::format("{}: {}: {}", made.scenario, made.subject(), made.fault));
    return 1;
  }
  return 0;
}

}  // namespace

void add_bench(CLI::App& program, int& status) {
  add_command(program, "bench", "Measure allocators", declare_bench, run_bench, status);
}

}  // namespace warpheap::tool
