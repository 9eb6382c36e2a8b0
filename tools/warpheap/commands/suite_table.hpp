// SPDX-License-Identifier: Apache-2.0
// What `warpheap bench --suite` measures: a table of scenarios, each with its options and
// allocators.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench_rows_of.hpp"

namespace warpheap::tool {

/// One file of a suite: a scenario with its options.
struct suite_entry {
  using workload_function =
      std::function<std::vector<bench::result>(backend const&, std::string const& allocator, bench::request const&)>;

  std::string scenario;                 ///< of bench, or the command that has `workload`
  std::vector<std::string> allocators;  ///< none: the scenario's rows without an allocator alone
  std::string options;                  ///< as on the command line
  double seconds = 0;                   ///< on an H200, roughly: the weight of its progress
  std::string name = scenario;          ///< of the file, without .json
  workload_function workload = {};      ///< an allocator's rows, if no scenario has them
};

/// The names that --suite takes.
inline constexpr char const* suite_names[] = {"quick", "papers", "full"};

/// The entries of a suite. `all` are the names of all allocators.
std::vector<suite_entry> suite_entries(std::string const& suite, std::vector<std::string> const& all);

}  // namespace warpheap::tool
