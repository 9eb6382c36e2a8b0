// SPDX-License-Identifier: Apache-2.0
#include "bench_help.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/wrapped_text.hpp"

namespace warpheap::tool {

namespace {

std::string long_name(CLI::Option const& option) { return "--" + option.get_single_name(); }

bench_option const* find_option(CLI::Option const& option) {
  auto const& known = bench_options();
  auto const at = std::ranges::find(known, long_name(option), &bench_option::name);
  return at == known.end() ? nullptr : &*at;
}

/// The usual pool and the scenarios that have another, as in "8GiB, and 512MiB for exhaust". Of a
/// single scenario, its own.
std::string pools_help(std::string const& usual, std::vector<bench::scenario> const& scenarios,
                       u64 bench::default_pools::*pool) {
  std::map<u64, std::vector<std::string>, std::greater<>> others;
  for (auto const& each : scenarios)
    if (each.pool.*pool) others[each.pool.*pool].push_back(each.name);
  std::vector<std::string> parts{usual};
  if (scenarios.size() == 1 && !others.empty()) return fmt::format("{}MiB", others.begin()->first >> 20);
  for (auto const& [bytes, names] : others) parts.push_back(fmt::format("{}MiB for {}", bytes >> 20, listed(names)));
  return listed(parts, ", and ");
}

}  // namespace

std::vector<bench::scenario> bench_help::wanted() const {
  std::vector<bench::scenario> scenarios;
  if (!flags_.suite.empty()) return scenarios;  // files are named, and have options of their own
  for (auto const& name : flags_.scenarios) scenarios.push_back(bench::scenario_called(name, *make_host_backend()));
  return scenarios;
}

bool bench_help::is_shown(CLI::Option const& option) const {
  auto const scenarios = wanted();
  if (scenarios.empty()) return true;
  if (option.get_positional()) return false;
  auto const name = long_name(option);
  if (name == "--suite" || name == "--output" || name == "--fresh") return false;
  auto const* const known = find_option(option);
  return !known || std::ranges::any_of(scenarios, [&](auto const& each) { return known->is_used_by(each.name); });
}

std::string bench_help::make_description(CLI::App const* app) const {
  std::string text;
  for (auto const& each : wanted()) text += wrapped(fmt::format("{}: {}", each.name, each.text)) + "\n";
  return text.empty() ? help_formatter::make_description(app) : text;
}

std::string bench_help::make_usage(CLI::App const* app, std::string name) const {
  auto const scenarios = wanted();
  if (scenarios.empty()) return help_formatter::make_usage(app, name);
  return fmt::format("Usage: {} {} [OPTIONS]\n", name, fmt::join(names_of(scenarios), " "));
}

std::string bench_help::make_group(std::string group, bool is_positional,
                                   std::vector<CLI::Option const*> options) const {
  std::erase_if(options, [&](auto const* option) { return !is_shown(*option); });
  return options.empty() ? "" : help_formatter::make_group(std::move(group), is_positional, std::move(options));
}

std::string bench_help::make_option_desc(CLI::Option const* option) const {
  auto const scenarios = wanted();
  auto const* const known = find_option(*option);
  if (scenarios.empty() || !known) return help_formatter::make_option_desc(option);
  if (!known->text.empty()) return known->help_of(names_of(scenarios));
  if (known->name != "--pool") return help_formatter::make_option_desc(option);
  auto const defaults = bench_defaults(scenarios);
  return pool_help(defaults.gpu_pool, defaults.host_pool);
}

std::string bench_help::make_footer(CLI::App const* app) const {
  auto const scenarios = wanted();
  if (scenarios.empty()) return help_formatter::make_footer(app);
  return wrapped(bench_notes(scenarios)) + "\n" + numbers_footer(*app);
}

std::string bench_notes(std::vector<bench::scenario> const& scenarios) {
  std::string text =
      "Operations a second count calls that were served; failures are the calls that returned nullptr. Half of the "
      "times lie between the quartiles.";
  if (std::ranges::any_of(scenarios, &bench::scenario::measures_allocators))
    text +=
        " Allocator 'null' is the baseline: a kernel that stores one pointer a thread, and for burst's free the chain "
        "of memory operations that no free can avoid. CUDA's own allocator ('toolkit') has one pool size a process, "
        "that of the first kernel that uses it.";
  return text;
}

std::string scenarios_help(std::vector<bench::scenario> const& scenarios) {
  using enum bench::scenario_kind;
  std::map<bench::scenario_kind, std::vector<std::string>> kinds;
  for (auto const& each : scenarios) kinds[each.kind].push_back(fmt::format("{} ({})", each.name, each.text));
  auto const line = [&](bench::scenario_kind kind) { return fmt::format("{}.", fmt::join(kinds[kind], ", ")); };
  return fmt::format("Scenarios: {}\nOf the default allocator alone: {}\nOf primitives, and of no allocator: {}",
                     line(of_allocators), line(of_default_allocator), line(of_primitives));
}

common_defaults bench_defaults(std::vector<bench::scenario> const& scenarios) {
  return {.host_pool = pools_help(fmt::format("{}MiB", bench_host_pool >> 20), scenarios, &bench::default_pools::host),
          .gpu_pool = pools_help(common_defaults{}.gpu_pool, scenarios, &bench::default_pools::gpu)};
}

}  // namespace warpheap::tool
