// SPDX-License-Identifier: Apache-2.0
// A request of a scenario that must be done in a moment.
#pragma once

#include "bench/request.hpp"

namespace warpheap::tool {

inline bench::request small_request() {
  bench::request asked;
  asked.pool_bytes = u64{4} << 20;
  asked.repeat = 2;
  asked.threads = 500;  // the last warp is partial
  asked.rounds = 16;
  asked.kernels = 2;
  return asked;
}

}  // namespace warpheap::tool
