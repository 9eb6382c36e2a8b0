// SPDX-License-Identifier: Apache-2.0
// What `warpheap bench --suite` measures: a table of scenarios, each with its options and
// allocators.
#pragma once

#include <string>
#include <vector>

#include "bench/request.hpp"

namespace warpheap::tool {

/// One scenario of a suite, whose results are one file.
struct suite_entry {
  std::string scenario;
  std::vector<std::string> allocators;  ///< none: the scenario's rows without an allocator alone
  bench::request asked;                 ///< what is empty or 0 is the scenario's default
  double seconds = 0;                   ///< on an H200, roughly: the weight of its progress
};

/// The names that --suite takes.
inline constexpr char const* suite_names[] = {"quick", "full"};

/// The entries of a suite. `all` are the names of all allocators.
std::vector<suite_entry> suite_entries(std::string const& suite, std::vector<std::string> const& all);

}  // namespace warpheap::tool
