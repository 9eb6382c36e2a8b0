// SPDX-License-Identifier: Apache-2.0
// The rows of one scenario, for `bench` and its suites.
#pragma once

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "choices.hpp"
#include "scenarios/scenario.hpp"

namespace warpheap::tool {

/// The pool of a scenario if none was typed.
inline u64 default_pool(choices const& chosen, bench::default_pools const& pool) {
  u64 const special = chosen.on->name() == "host" ? pool.host : pool.gpu;
  return special ? special : chosen.pool_bytes;
}

/// The options of a scenario and --repeat as they are typed, by name.
using typed_options = std::map<std::string, std::string>;

/// The options of a command line, all of which have values.
inline typed_options options_of_line(std::string const& line) {
  typed_options typed;
  std::istringstream words{line};
  for (std::string name, value; words >> name >> value;) typed[name] = value;
  return typed;
}

/// Gives `asked` the values of what was typed for options that `scenario` uses. Throws usage_error.
inline void add_values(bench::request& asked, bench::scenario const& scenario, typed_options const& typed,
                       bench::option_bounds const& bounds) {
  if (auto const repeat = typed.find("--repeat"); repeat != typed.end() && !repeat->second.empty())
    asked.repeat = static_cast<u32>(parse_count("--repeat", repeat->second, 1, 10'000));
  for (auto const& [option, detail] : scenario.uses)
    if (auto const text = typed.find(option.name); text != typed.end() && !text->second.empty())
      asked.values[option.name] = option.parse(option.name, text->second, bounds);
}

/// The rows without an allocator, and those of each allocator. Ends early, with the rows that are
/// finished, when `asked.proceed` says so.
inline std::vector<bench::result> rows_of(bench::scenario const& scenario, std::vector<std::string> const& allocators,
                                          bench::request const& asked) {
  std::vector<bench::result> rows;
  if (scenario.baseline) rows = scenario.baseline(asked);
  if (!scenario.measures_allocators()) return rows;
  for (auto const& allocator : allocators) {
    if (!asked.proceed(scenario.name + ", " + allocator, 0, 1)) break;
    for (auto const& made : scenario.run(allocator, asked)) rows.push_back(made);
  }
  return rows;
}

}  // namespace warpheap::tool
