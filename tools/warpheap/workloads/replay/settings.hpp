// SPDX-License-Identifier: Apache-2.0
// A replay of `warpheap replay`: what it is asked for.
#pragma once

#include "measure/result.hpp"
#include "plan.hpp"

namespace warpheap::tool {

/// One trace on one allocator. The plan outlives it.
struct replay_settings {
  replay_plan const* plan = nullptr;
  u64 pool_bytes = 0;
  u32 repeat = 7;
  bench::progress report = [](std::string const&, u64, u64) {};
};

/// A backend's part.
struct replay_job {
  /// The calls of a trace, made again.
  bench::result (*run)(std::string const& allocator, replay_settings const& settings);
  /// Its kernels without an allocator.
  bench::result (*baseline)(replay_settings const& settings);
};

}  // namespace warpheap::tool
