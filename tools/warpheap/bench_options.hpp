// The options of `bench`: what each sets, and which scenarios use it. Both the help and the
// refusals are made from this table, so they agree. A scenario that begins or ceases to use an
// option changes its entry, and tests/tool/bench_options.cpp compares the entries with what the
// scenarios do.
#pragma once

#include <string>
#include <vector>

#include "commands.hpp"

namespace warpheap::tool {

/// Scenarios for which the help describes an option in the same way.
struct scenario_group {
  std::vector<std::string> scenarios;
  std::string detail = {};  ///< what help says in parentheses
};

struct bench_option {
  char const* name;
  char const* type;
  /// The text typed for it; empty if none was.
  std::string& (*typed)(bench_flags& flags);
  std::string text;                    ///< for help; empty for an option that every command has
  std::vector<scenario_group> groups;  ///< the scenarios that use it,
  bool is_of_others = false;           ///< or, if this is true, all other scenarios
  std::string initial = {};            ///< the default, if it is the same for all scenarios

  bool is_used_by(std::string const& scenario) const;
  /// The option's text in the help.
  std::string help() const;
};

/// All options but --backend, --seed, --json and --deterministic, which every scenario takes.
std::vector<bench_option> const& bench_options();

/// Throws usage_error if an option was typed that none of `scenarios` uses.
void refuse_unused(bench_flags const& flags, std::vector<std::string> const& scenarios);

}  // namespace warpheap::tool
