// SPDX-License-Identifier: Apache-2.0
// The rows of one scenario, for `bench` and its suites.
#pragma once

#include <string>
#include <vector>

#include "cli/choices.hpp"

namespace warpheap::tool {

/// The pool of a scenario if none was typed.
inline u64 default_pool(choices const& chosen, bench::default_pools const& pool) {
  u64 const special = chosen.on->name() == "host" ? pool.host : pool.gpu;
  return special ? special : chosen.pool_bytes;
}

/// The rows without an allocator, and those of each allocator. Ends early, with the rows that are
/// finished, when `asked.proceed` says so.
inline std::vector<bench::result> rows_of(bench::scenario const& scenario, std::vector<std::string> const& allocators,
                                          bench::request const& asked) {
  std::vector<bench::result> rows;
  if (scenario.floor) rows = scenario.floor(asked);
  if (!scenario.measures_allocators()) return rows;
  for (auto const& allocator : allocators) {
    if (!asked.proceed(scenario.name + ", " + allocator, 0, 1)) break;
    for (auto const& made : scenario.run(allocator, asked)) rows.push_back(made);
  }
  return rows;
}

}  // namespace warpheap::tool
