// A piece of memory by where it starts and how long it is: what a reserve pool hands to an
// alignment policy, that to a creation policy, and what tells one pool's blocks from another's.
#pragma once

#include "../platform/types.hpp"

namespace warpheap {

struct memory_range {
  void* begin = nullptr;
  size_t bytes = 0;

  WARPHEAP_HOST_DEVICE bool contains(void const* memory) const {
    return reinterpret_cast<u64>(memory) - reinterpret_cast<u64>(begin) < bytes;
  }
};

}  // namespace warpheap
