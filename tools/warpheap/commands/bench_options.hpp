// SPDX-License-Identifier: Apache-2.0
// The options of `bench` in its help and in its refusals. The scenarios say which options they use
// (scenarios/scenario.hpp), and both are made from what they say, so they agree.
// tests/tool/commands/bench_options_test.cpp compares it with what the scenarios do.
#pragma once

#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "bench_rows_of.hpp"
#include "cli/options.hpp"

namespace warpheap::tool {

/// What was typed for `bench`: text, empty where nothing was.
struct bench_flags {
  common_flags common;
  std::vector<std::string> scenarios;
  std::string suite;
  std::string output;
  bool fresh = false;
  typed_options typed;
};

/// Scenarios for which the help describes an option in the same way.
struct scenario_group {
  std::vector<std::string> scenarios;
  std::string detail = {};  ///< what help says in parentheses
};

struct bench_option {
  std::string name;
  char const* type;
  std::string text;                         ///< for help; empty if every command has the option
  std::string initial = {};                 ///< the default, if it is the same for all scenarios
  bool is_of_others = false;                ///< all scenarios use it but those of `groups`
  std::vector<scenario_group> groups = {};  ///< the scenarios that use it

  /// The text typed for it; empty if none was.
  std::string& typed(bench_flags& flags) const;
  bool is_used_by(std::string const& scenario) const;
  /// The option's text in the help.
  std::string help() const;
  /// Its text in the help of these scenarios, some of which use it.
  std::string help_of(std::vector<std::string> const& scenarios) const;
};

/// All options but --backend, --seed, --json and --deterministic, which every scenario takes. Every
/// backend has the same scenarios.
std::vector<bench_option> const& bench_options();

/// Throws usage_error if an option was typed that none of `scenarios` uses.
void refuse_unused(bench_flags const& flags, std::vector<std::string> const& scenarios);

}  // namespace warpheap::tool
