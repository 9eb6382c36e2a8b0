// SPDX-License-Identifier: Apache-2.0
// `warpheap bench`: scenarios one after the other, each with every allocator that was chosen.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench_options.hpp"
#include "bench_rows_of.hpp"
#include "cli/choices.hpp"
#include "cli/gpus.hpp"
#include "cli/interruption.hpp"
#include "cli/numbers.hpp"
#include "cli/progress_bar.hpp"
#include "command.hpp"
#include "io/bench_rows.hpp"
#include "io/json_output.hpp"
#include "io/standard_output.hpp"
#include "paper_suite.hpp"
#include "suite.hpp"

namespace warpheap::tool {

namespace {

using json = nlohmann::ordered_json;

constexpr u64 bench_host_pool = u64{256} << 20;
constexpr char const* default_results_folder = "warpheap-results";

/// Each worker has sixteen blocks that live at a time.
constexpr u64 most_workers = u64{1} << 22;

constexpr u64 most_batch = u64{1} << 20;
/// The longest pause that a GPU makes.
constexpr u64 most_batch_ns = 1'000'000;

/// Each kernel has a time in the results.
constexpr u64 most_kernels = 10'000'000;
/// Weak scaling makes larger graphs yet.
constexpr u64 most_scale = 26;
/// A day.
constexpr double most_seconds = 86'400;

std::vector<u64> parse_counts(char const* flag, std::string const& typed, u64 most) {
  std::vector<u64> numbers;
  if (typed.empty()) return numbers;
  for (auto const& part : split_list(flag, typed)) numbers.push_back(parse_count(flag, part, 1, most));
  return numbers;
}

std::vector<bench::divergence> parse_divergences(std::string const& typed) {
  using enum bench::divergence;
  std::vector<bench::divergence> kinds;
  if (typed.empty()) return kinds;
  for (auto const& part : split_list("--divergence", typed)) {
    if (part == "thread") kinds.push_back(per_thread);
    else if (part == "warp") kinds.push_back(per_warp);
    else if (part == "block") kinds.push_back(per_thread_block);
    else throw usage_error{fmt::format("--divergence: '{}' is none of thread, warp, block", part)};
  }
  return kinds;
}

/// Parses `EVEN,ODD`.
std::vector<double> parse_shares(char const* flag, std::string const& typed) {
  std::vector<double> shares;
  for (auto const& part : split_list(flag, typed)) shares.push_back(parse_real(flag, part, 0, 1));
  if (shares.size() != 2) throw usage_error{fmt::format("{}: '{}' is not two shares, like 0.95,0.55", flag, typed)};
  return shares;
}

/// Parses shares of a pool, of at least a thousandth. More than 1 asks for more than there is.
std::vector<double> parse_levels(std::string const& typed) {
  std::vector<double> levels;
  if (typed.empty()) return levels;
  for (auto const& part : split_list("--levels", typed)) levels.push_back(parse_real("--levels", part, 0.001, 8));
  return levels;
}

/// Parses shares of the blocks that are left: 0, or at least a thousandth, since results name
/// shares in thousandths.
std::vector<double> parse_left_shares(std::string const& typed) {
  std::vector<double> shares;
  if (typed.empty()) return shares;
  for (auto const& part : split_list("--left-shares", typed)) {
    double const share = parse_real("--left-shares", part, 0, 1);
    if (share > 0 && share < 0.001)
      throw usage_error{fmt::format("--left-shares: {} is neither 0 nor between 0.001 and 1", part)};
    shares.push_back(share);
  }
  return shares;
}

/// Parses shares of the pages that are free.
std::vector<double> parse_page_shares(std::string const& typed) {
  std::vector<double> shares;
  if (typed.empty()) return shares;
  for (auto const& part : split_list("--page-shares", typed))
    shares.push_back(parse_real("--page-shares", part, 0.0001, 1));
  return shares;
}

/// Refuses configurations of papers where the scenario does not measure them.
void refuse_variants_of(backend const& on, std::string const& scenario, std::vector<std::string> const& allocators) {
  for (auto const& each : on.scenarios())
    if (each.name == scenario && each.measures_allocators() && !each.measures_variants) refuse_variants(on, allocators);
}

/// Refuses options that none of these scenarios uses, and pairs that exclude each other.
void refuse_options(bench_flags const& flags, std::vector<std::string> const& scenarios) {
  refuse_unused(flags, scenarios);
  if (!flags.kernels.empty())
    refuse_typed({{"--seconds", flags.seconds}}, "long_churn ends after --kernels, which is given");
}

/// The scenarios that were typed; all of them if none was.
std::vector<bench::scenario> choose_scenarios(backend const& on, std::vector<std::string> const& typed) {
  auto const& known = on.scenarios();
  if (typed.empty()) return known;
  std::vector<bench::scenario> chosen;
  for (auto const& name : typed) {
    auto const at = std::find_if(known.begin(), known.end(), [&](auto const& each) { return each.name == name; });
    if (at == known.end())
      throw usage_error{
          fmt::format("no scenario is called '{}'; there are: {}", name, fmt::join(names_of(known), ", "))};
    chosen.push_back(*at);
  }
  return chosen;
}

bench::request parse_request(bench_flags const& flags, choices const& chosen) {
  bench::request asked;
  asked.pool_bytes = chosen.pool_bytes;
  asked.seed = chosen.seed;
  asked.sizes = parse_sizes(flags.sizes, chosen.pool_bytes);
  asked.ranges = parse_ranges(flags.ranges, chosen.pool_bytes);
  if (!flags.threads.empty()) asked.threads = parse_count("--threads", flags.threads, 1, most_threads);
  asked.workers = parse_counts("--workers", flags.workers, most_workers);
  asked.thread_blocks = parse_counts("--thread-blocks", flags.thread_blocks, 1024);
  asked.readers_per_writer = parse_counts("--readers-per-writer", flags.readers_per_writer, most_workers);
  asked.divergences = parse_divergences(flags.divergence);
  if (!flags.allocate_shares.empty()) asked.allocate_shares = parse_shares("--allocate-shares", flags.allocate_shares);
  if (!flags.free_shares.empty()) asked.free_shares = parse_shares("--free-shares", flags.free_shares);
  if (!flags.batch.empty()) asked.batch = static_cast<u32>(parse_count("--batch", flags.batch, 1, most_batch));
  if (!flags.batch_ns.empty())
    asked.batch_ns = static_cast<u32>(parse_count("--batch-ns", flags.batch_ns, 0, most_batch_ns));
  asked.levels = parse_levels(flags.levels);
  asked.left_shares = parse_left_shares(flags.left_shares);
  asked.page_shares = parse_page_shares(flags.page_shares);
  if (!flags.kernels.empty()) asked.kernels = parse_count("--kernels", flags.kernels, 1, most_kernels);
  if (!flags.seconds.empty()) asked.seconds = parse_real("--seconds", flags.seconds, 0.001, most_seconds);
  if (!flags.scale.empty()) asked.scale = static_cast<u32>(parse_count("--scale", flags.scale, 1, most_scale));
  asked.devices = parse_gpus(flags.gpus, *chosen.on);
  if (!flags.rounds.empty()) asked.rounds = static_cast<u32>(parse_count("--rounds", flags.rounds, 1, 1'000'000));
  if (!flags.repeat.empty()) asked.repeat = static_cast<u32>(parse_count("--repeat", flags.repeat, 1, 10'000));
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
  auto const scenarios = make_host_backend()->scenarios();  // every backend has the same
  to.footer(
      scenarios_help(scenarios) +
      "\n"
      "An option is refused if none of the scenarios that are asked for uses it.\n"
      "Operations a second count calls that were served; failures are the calls that returned nullptr. Allocator "
      "'null' is the floor: a kernel that stores one pointer a thread, and for burst's free the chain of memory "
      "operations that no free can avoid. CUDA's own allocator ('toolkit') has one pool size a process, that of the "
      "first kernel that uses it.");
  to.add_option("scenarios", flags.scenarios, "What to measure, as named below (default all of them)")
      ->type_name("SCENARIO");
  auto const host_pools = pools_help("256MiB", scenarios, &bench::default_pools::host);
  auto const gpu_pools = pools_help(common_defaults{}.gpu_pool, scenarios, &bench::default_pools::gpu);
  add_common_flags(to, flags.common, {.host_pool = host_pools, .gpu_pool = gpu_pools});
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
      add_text(to, option.name, option.typed(flags), option.help(), option.type)->default_str(option.initial);
}

/// The entries of the suite that was typed: those of the scenarios that were typed, if any, and of
/// the allocators.
std::vector<suite_entry> entries_of(bench_flags const& flags, choices const& chosen) {
  if (std::find(std::begin(suite_names), std::end(suite_names), flags.suite) == std::end(suite_names))
    throw usage_error{fmt::format("--suite: '{}' is none of {}", flags.suite, fmt::join(suite_names, ", "))};
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
    if (!option.text.empty()) refuse_typed({{option.name, option.typed(typed)}}, "a suite has options of its own");
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
  auto const [results, signal] = measure(chosen, scenarios, parse_request(flags, chosen), !flags.common.pool.empty());

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
