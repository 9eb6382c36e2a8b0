// SPDX-License-Identifier: Apache-2.0
// What `warpheap verify` found in a heap.
#pragma once

#include <string>

#include "warpheap/platform/types.hpp"

namespace warpheap::tool {

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

}  // namespace warpheap::tool
