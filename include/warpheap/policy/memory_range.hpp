// A piece of memory, given by its start and its length. A reserve pool hands one to an alignment
// policy, and that one to a creation policy; it also tells one pool's blocks from another's.
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
