// SPDX-License-Identifier: Apache-2.0
// The scenarios of a backend. A scenario has a header: its options, its measurement, and about_…(),
// which says of it what help and lists need. A line of a source in scenarios/ registers it. These
// sources are compiled once a backend and linked as objects, so no linker drops one.
#pragma once

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "backend/allocators.hpp"
#include "scenario.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

class registration {
 public:
  explicit registration(scenario added) {
    auto const place = [](scenario const& each) { return std::tie(each.kind, each.rank, each.name); };
    auto& all = tool::registered_part<std::vector<scenario>>();
    auto const comes_before = [&](scenario const& left, scenario const& right) { return place(left) < place(right); };
    all.insert(std::upper_bound(all.begin(), all.end(), added, comes_before), std::move(added));
  }
};

/// Registers a scenario of allocators: `measure(subject, asked)` has the rows of one.
template <class Allocators = tool::known_allocators, class Measure>
registration with_allocators(scenario about, Measure measure) {
  about.run = [measure](std::string const& allocator, request const& asked) {
    return Allocators::measure(allocator, [&](auto const& subject) { return measure(subject, asked); });
  };
  return registration{std::move(about)};
}
/// As with_allocators(), of a scenario that measures the configurations of papers as well.
template <class Measure>
registration with_variants(scenario about, Measure measure) {
  about.measures_variants = true;
  return with_allocators<tool::all_allocators>(std::move(about), measure);
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
