// SPDX-License-Identifier: Apache-2.0
// A piece of memory, given by its start and its length. A reserve pool hands one to an alignment
// policy, and that one to a creation policy; it also tells one pool's blocks from another's.
#pragma once

#include "../platform/types.hpp"

namespace warpheap {

/// The bytes from `begin` on.
struct memory_range {
  void* begin = nullptr;  ///< its first byte
  size_t bytes = 0;       ///< how many

  /// Whether an address lies in it.
  WARPHEAP_HOST_DEVICE bool contains(void const* memory) const {
    return reinterpret_cast<u64>(memory) - reinterpret_cast<u64>(begin) < bytes;
  }
};

}  // namespace warpheap
