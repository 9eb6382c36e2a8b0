// SPDX-License-Identifier: Apache-2.0
// What a scenario says of itself: its name, what help tells of it, the options that it uses, its
// pool, and how it is run. Help, refusals of unused options and all lists of scenarios are made
// from this. Plain data, for code that no GPU compiler sees.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "cli/nearest_names.hpp"
#include "options.hpp"

namespace warpheap::bench {

struct used_option {
  option_text option;
  std::string detail = {};  ///< what help says in parentheses of this scenario, like its default
};

/// Where help lists a scenario. Lists are in this order.
enum class scenario_kind { of_allocators, of_default_allocator, of_primitives };

/// The pool if none is typed, bytes; 0 is the default of `warpheap bench`.
struct default_pools {
  u64 gpu = 0;
  u64 host = 0;
};

struct scenario {
  using run_function = std::function<std::vector<result>(std::string const& allocator, request const&)>;
  using baseline_function = std::function<std::vector<result>(request const&)>;

  std::string name;
  std::string text;  ///< what help says of it, in a line
  scenario_kind kind = scenario_kind::of_allocators;
  /// Place among scenarios of its kind, those without one last; of one rank, by name.
  u32 rank = 1000;
  /// Beside --pool and --repeat, which every scenario uses but for those in `ignores`, and
  /// --allocator, which a scenario with `run` uses.
  std::vector<used_option> uses = {};
  std::vector<std::string> ignores = {};
  default_pools pool = {};
  bool measures_variants = false;   ///< the configurations of papers as well: with_variants()
  run_function run = {};            ///< one allocator's rows; empty: `baseline` has all rows
  baseline_function baseline = {};  ///< rows without an allocator: a baseline, or primitives

  bool measures_allocators() const { return static_cast<bool>(run); }
};

inline std::vector<std::string> names_of(std::vector<scenario> const& scenarios) {
  std::vector<std::string> names;
  names.reserve(scenarios.size());
  for (auto const& each : scenarios) names.push_back(each.name);
  return names;
}

/// The scenarios of a backend, in the order of lists.
inline std::vector<scenario> const& scenarios_of(tool::backend const& on) { return on.part<std::vector<scenario>>(); }

/// Throws usage_error if there is none of this name.
inline scenario const& scenario_called(std::string const& name, tool::backend const& on) {
  auto const& known = scenarios_of(on);
  auto const at = std::find_if(known.begin(), known.end(), [&](auto const& each) { return each.name == name; });
  if (at != known.end()) return *at;
  throw tool::usage_error{"no scenario is called '" + name + "'; " + tool::names_instead_of(name, names_of(known))};
}

}  // namespace warpheap::bench
