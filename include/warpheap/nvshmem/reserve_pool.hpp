// SPDX-License-Identifier: Apache-2.0
// The pool from NVSHMEM's symmetric heap: at the same offset on every PE, so that a block's offset
// names it for all of them. symmetric_heap.hpp makes heaps from it. Programs include this header by
// name.
#pragma once

#include <stdexcept>
#include <string>

#include "symmetric_memory.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace reserve_pool {

/// Owns one range of symmetric memory. Movable.
class nvshmem {
 public:
  /// For info().
  static constexpr char const* name = "nvshmem";
  /// With NVSHMEM's functions.
  static constexpr bool peers_reach_it = true;

  /// All PEs. Takes `bytes` bytes on each and returns where they start on this one. Called once.
  /// Throws on every PE if they request different sizes (std::invalid_argument), or if one of their
  /// devices lacks the free memory (out_of_memory).
  void* acquire(size_t bytes) {
    auto const asked = gather_from_pes(bytes);
    for (size_t pe = 0; pe < asked.size(); ++pe)
      if (asked[pe] != asked[0])
        throw std::invalid_argument{"heap in symmetric memory: PE 0 asks for " + std::to_string(asked[0]) +
                                    " bytes, and PE " + std::to_string(pe) + " for " + std::to_string(asked[pe])};
    auto const free = gather_from_pes(free_bytes());
    for (size_t pe = 0; pe < free.size(); ++pe)
      if (free[pe] < bytes)
        throw out_of_memory{"heap in symmetric memory: " + std::to_string(bytes) + " bytes, but the device of PE " +
                            std::to_string(pe) + " has " + std::to_string(free[pe]) + " free"};
    memory_ = symmetric_memory{bytes};
    return memory_.begin();
  }

 private:
  /// Of this PE's device.
  static size_t free_bytes() {
    size_t free = 0, total = 0;
    backend::throw_on_error(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    return free;
  }

  symmetric_memory memory_;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::reserve_pool
