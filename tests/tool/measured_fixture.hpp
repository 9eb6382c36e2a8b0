// SPDX-License-Identifier: Apache-2.0
// The unit of pools in tests, and the figures of a row.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "measure/result.hpp"

namespace warpheap::tool {

inline constexpr u64 mebibyte = u64{1} << 20;

inline std::map<std::string, double> figures_of(bench::result const& row) {
  return {row.figures.begin(), row.figures.end()};
}

/// The figure that is called `name`; a failure if there is none.
inline double figure(bench::result const& row, std::string const& name) {
  auto const figures = figures_of(row);
  auto const at = figures.find(name);
  if (at != figures.end()) return at->second;
  ADD_FAILURE() << "no figure " << name;
  return 0;
}

}  // namespace warpheap::tool
