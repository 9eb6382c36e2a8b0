// SPDX-License-Identifier: Apache-2.0
// A request of a scenario that must be done in a moment.
#pragma once

#include "scenarios/scenario.hpp"

namespace warpheap::tool {

namespace options = bench::options;

/// The scenario's rows of an allocator, on the host backend.
inline std::vector<bench::result> run_on_host(std::string const& scenario, std::string const& allocator,
                                              bench::request const& asked) {
  return bench::scenario_called(scenario, *make_host_backend()).run(allocator, asked);
}
/// Its rows without an allocator.
inline std::vector<bench::result> baseline_on_host(std::string const& scenario, bench::request const& asked) {
  return bench::scenario_called(scenario, *make_host_backend()).baseline(asked);
}

inline bench::request small_request() {
  bench::request asked;
  asked.pool_bytes = u64{4} << 20;
  asked.repeat = 2;
  asked[options::threads] = 500;  // the last warp is partial
  asked[options::rounds] = 16;
  asked[options::kernels] = 2;
  return asked;
}

}  // namespace warpheap::tool
