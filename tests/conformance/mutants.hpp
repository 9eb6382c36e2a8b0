// SPDX-License-Identifier: Apache-2.0
// The reference allocator with one thing wrong, and the search for a schedule under which a check
// sees it.
#pragma once

#include "reference.hpp"
#include "scenario.hpp"
#include "verdict.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace conformance {

/// What `check` says of a broken allocator under the first schedule that shows the fault; empty if
/// none of `seeds` does.
template <class Check>
std::string first_complaint(u32 seeds, Check check) {
#if defined(__CUDACC__)
  static_cast<void>(seeds);
  return check(scenario{{16, 64}, mebibyte, 1, false}).faults();
#else
  for (u64 seed = 0; seed < seeds; ++seed) {
    host::scoped_execution const use{test::schedule_of(seed)};
    auto const found = check(small_scenario(seed));
    if (!found.ok()) return found.faults();
  }
  return {};
#endif
}

}}}  // namespace warpheap::WARPHEAP_BACKEND::conformance
