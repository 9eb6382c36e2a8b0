// SPDX-License-Identifier: Apache-2.0
#include "bench_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "choices.hpp"
#include "cli/wrapped_text.hpp"
#include "scenarios/scenario.hpp"

namespace warpheap::tool {

namespace {

constexpr char const* allocator_option = "--allocator";

/// The options without their groups: the scenarios' own by rank, between those of every command and
/// --repeat.
std::vector<bench_option> options_of(std::vector<bench::scenario> const& scenarios) {
  std::map<u32, bench::option_text> by_rank;
  for (auto const& scenario : scenarios)
    for (auto const& used : scenario.uses) by_rank.emplace(used.option.rank, used.option);
  std::vector<bench_option> made{{.name = allocator_option, .type = "NAME[,NAME...]", .text = "", .is_of_others = true},
                                 {.name = "--pool", .type = "SIZE", .text = "", .is_of_others = true}};
  for (auto const& [rank, option] : by_rank)
    made.push_back({.name = option.name, .type = option.type, .text = option.text, .initial = option.initial});
  made.push_back({.name = "--repeat",
                  .type = "N",
                  .text = "Times that each operation is measured",
                  .initial = fmt::format("{}", bench::request{}.repeat),
                  .is_of_others = true});
  return made;
}

std::vector<std::string> names_in(std::vector<scenario_group> const& groups) {
  std::vector<std::string> names;
  for (auto const& group : groups) names.insert(names.end(), group.scenarios.begin(), group.scenarios.end());
  return names;
}

bool has(std::vector<std::string> const& names, std::string const& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The scenarios that use an option: the largest group first, and groups of one size by detail. The
/// exceptions of an option of all others are one group, by name.
std::vector<scenario_group> groups_of(bench_option const& option, std::vector<bench::scenario> const& scenarios) {
  std::map<std::string, std::vector<std::string>> by_detail;
  std::set<std::string> exceptions;
  for (auto const& each : scenarios) {
    for (auto const& used : each.uses)
      if (used.option.name == option.name) by_detail[used.detail].push_back(each.name);
    bool const ignores = has(each.ignores, option.name);
    if (ignores || (option.name == allocator_option && !each.measures_allocators())) exceptions.insert(each.name);
  }
  if (option.is_of_others) return {{{exceptions.begin(), exceptions.end()}}};
  std::vector<scenario_group> groups;
  groups.reserve(by_detail.size());
  for (auto const& [detail, names] : by_detail) groups.push_back({names, detail});
  std::stable_sort(groups.begin(), groups.end(),
                   [](auto const& left, auto const& right) { return left.scenarios.size() > right.scenarios.size(); });
  return groups;
}

/// Why none of `scenarios` takes the option.
std::string reason(bench_option const& option, std::vector<std::string> const& scenarios) {
  std::vector<std::string> once;
  for (auto const& name : scenarios)
    if (!has(once, name)) once.push_back(name);
  auto const known = listed(names_in(option.groups));
  auto const users = option.is_of_others ? fmt::format("all scenarios but {} do", known) : fmt::format("{} do", known);
  bool const one = !option.is_of_others && names_in(option.groups).size() == 1;
  return fmt::format("{} {} not use it; {}{}", listed(once), once.size() == 1 ? "does" : "do", users, one ? "es" : "");
}

}  // namespace

std::string& bench_option::typed(bench_flags& flags) const {
  if (name == allocator_option) return flags.common.allocators;
  return name == "--pool" ? flags.common.pool : flags.typed[name];
}

bool bench_option::is_used_by(std::string const& scenario) const {
  return has(names_in(groups), scenario) != is_of_others;
}

std::string bench_option::help() const {
  if (is_of_others) return fmt::format("{}; of all scenarios but {}", text, listed(names_in(groups)));
  std::vector<std::string> parts;
  for (auto const& group : groups)
    parts.push_back(group.detail.empty() ? listed(group.scenarios)
                                         : fmt::format("{} ({})", listed(group.scenarios), group.detail));
  return fmt::format("{}: of {}", text, fmt::join(parts, "; "));
}

std::string bench_option::help_of(std::vector<std::string> const& scenarios) const {
  if (is_of_others) return text;
  auto narrowed = *this;
  for (auto& group : narrowed.groups)
    std::erase_if(group.scenarios, [&](auto const& name) { return !has(scenarios, name); });
  std::erase_if(narrowed.groups, [](auto const& group) { return group.scenarios.empty(); });
  if (scenarios.size() > 1) return narrowed.help();
  auto const& detail = narrowed.groups.front().detail;
  if (detail.empty()) return text;
  bool const is_number = detail.find_first_not_of("0123456789") == detail.npos;
  return fmt::format("{} ({}{})", text, is_number ? "default " : "", detail);
}

std::vector<bench_option> const& bench_options() {
  static auto const options = [] {
    auto const scenarios = bench::scenarios_of(*make_host_backend());
    auto made = options_of(scenarios);
    for (auto& option : made) option.groups = groups_of(option, scenarios);
    return made;
  }();
  return options;
}

void refuse_unused(bench_flags const& flags, std::vector<std::string> const& scenarios) {
  auto typed = flags;
  for (auto const& option : bench_options())
    if (std::none_of(scenarios.begin(), scenarios.end(), [&](auto const& name) { return option.is_used_by(name); }))
      refuse_typed({{option.name.c_str(), option.typed(typed)}}, reason(option, scenarios));
}

}  // namespace warpheap::tool
