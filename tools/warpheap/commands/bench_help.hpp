// SPDX-License-Identifier: Apache-2.0
// Help of `bench`: of all scenarios, or of those that are typed before --help, with their options
// alone.
#pragma once

#include "bench_options.hpp"
#include "cli/parser_text.hpp"
#include "scenarios/scenario.hpp"

namespace warpheap::tool {

class bench_help final : public help_formatter {
 public:
  /// `flags` are what is typed, once the parser has read it.
  explicit bench_help(bench_flags const& flags) : flags_{flags} {}

  std::string make_description(CLI::App const* app) const override;
  std::string make_usage(CLI::App const* app, std::string name) const override;
  std::string make_group(std::string group, bool is_positional, std::vector<CLI::Option const*> options) const override;
  std::string make_option_desc(CLI::Option const* option) const override;
  std::string make_footer(CLI::App const* app) const override;

 private:
  /// Those whose help is wanted; none if it is that of all.
  std::vector<bench::scenario> wanted() const;
  bool is_shown(CLI::Option const& option) const;

  bench_flags const& flags_;
};

/// What help says of the scenarios, a paragraph for each kind.
std::string scenarios_help(std::vector<bench::scenario> const& scenarios);

/// What help says of the rows of these scenarios.
std::string bench_notes(std::vector<bench::scenario> const& scenarios);

/// The pool if none is typed, on the host backend.
inline constexpr u64 bench_host_pool = u64{256} << 20;

/// What help says of the defaults of these scenarios.
common_defaults bench_defaults(std::vector<bench::scenario> const& scenarios);

}  // namespace warpheap::tool
