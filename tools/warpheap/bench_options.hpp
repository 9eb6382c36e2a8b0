// The options of `bench`: what each sets, and which scenarios use it. Help and refusals both follow
// from this table, so they agree. A scenario that begins or ceases to use an option changes its
// entry, and tests/tool/bench_options.cpp compares the entries with what the scenarios do.
#pragma once

#include <string>
#include <vector>

#include "commands.hpp"

namespace warpheap::tool {

/// Scenarios of which help says the same about an option.
struct scenario_group {
  std::vector<std::string> scenarios;
  std::string detail = {};  ///< what help says in parentheses
};

struct bench_option {
  char const* name;
  char const* type;
  /// What was typed for it; empty if nothing was.
  std::string& (*typed)(bench_flags& flags);
  std::string text;                    ///< for help; empty if the option is one of every command
  std::vector<scenario_group> groups;  ///< the scenarios that use it,
  bool is_of_others = false;           ///< or, if this is true, all that do not
  std::string initial = {};            ///< the default, if it is the same for all scenarios

  bool is_used_by(std::string const& scenario) const;
  /// What help says of it.
  std::string help() const;
};

/// All but --backend, --seed, --json and --deterministic, which every scenario takes.
std::vector<bench_option> const& bench_options();

/// Throws usage_error if an option was typed that none of `scenarios` uses.
void refuse_unused(bench_flags const& flags, std::vector<std::string> const& scenarios);

}  // namespace warpheap::tool
