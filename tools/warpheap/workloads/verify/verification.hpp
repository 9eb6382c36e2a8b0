// SPDX-License-Identifier: Apache-2.0
// What `warpheap verify` is asked, and what it found in a heap.
#pragma once

#include <string>
#include <vector>

#include "measure/result.hpp"

namespace warpheap::tool {

struct verify_settings {
  u64 pool_bytes = 0;
  u64 seed = 1;
  u32 repeat = 2;
  u64 threads = 0;  ///< 0 means the backend's default
  std::vector<bench::size_range> ranges = {};
  bench::checkpoint proceed = [](std::string const&, u64, u64) { return true; };
};

/// One fill of a heap in `verify`.
struct verification {
  std::string allocator = {};
  u64 least_bytes = 0;
  u64 most_bytes = 0;
  u64 blocks = 0;
  u64 bytes = 0;
  u64 failures = 0;
  u64 damaged = 0;
  u64 misaligned = 0;
  bool counts_slots = false;
  u64 slots_before = 0;
  u64 slots_after = 0;
  double seconds = 0;
  std::string fault = {};
  std::string skipped = {};  ///< why the heap was not filled; empty if it was

  bool verified() const { return fault.empty(); }
};

/// A backend's part.
struct verify_job {
  std::vector<verification> (*run)(std::string const& allocator, verify_settings const& asked);
};

}  // namespace warpheap::tool
