// SPDX-License-Identifier: Apache-2.0
// The scenarios of a backend. Each registers itself by an object of class `registration`, at the
// end of its source in bench/scenarios/. These sources are compiled once a backend and linked as
// objects, so no linker drops one.
#pragma once

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "scenario.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

/// All scenarios, in the order of lists. Complete once main() runs.
inline std::vector<scenario>& registered_scenarios() {
  static std::vector<scenario> all;
  return all;
}

class registration {
 public:
  explicit registration(scenario added) {
    auto const place = [](scenario const& each) { return std::tie(each.kind, each.rank, each.name); };
    auto& all = registered_scenarios();
    auto const comes_before = [&](scenario const& left, scenario const& right) { return place(left) < place(right); };
    all.insert(std::upper_bound(all.begin(), all.end(), added, comes_before), std::move(added));
  }
};

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
