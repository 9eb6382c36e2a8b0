// SPDX-License-Identifier: Apache-2.0
// A replay of `warpheap replay`: what it is asked for.
#pragma once

#include "bench/request.hpp"
#include "plan.hpp"

namespace warpheap::tool {

/// One trace on one allocator. The plan outlives it.
struct replay_settings {
  replay_plan const* plan = nullptr;
  u64 pool_bytes = 0;
  u32 repeat = 7;
  bench::progress report = [](std::string const&, u64, u64) {};
};

}  // namespace warpheap::tool
