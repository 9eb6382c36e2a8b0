// SPDX-License-Identifier: Apache-2.0
// Kernels whose threads each own a block that holds the thread's number.
#pragma once

#include "warpheap/platform/simt.hpp"

namespace warpheap::test {

/// Kernel: every thread asks once, and writes its number over all of its block.
struct take_numbered {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 words, u64** blocks) const {
    u64 const me = global_thread_index();
    u64* const block = static_cast<u64*>(heap.malloc(8 * words));
    for (u64 i = 0; block && i < words; ++i) block[i] = me;
    blocks[me] = block;
  }
};

/// Kernel: counts the threads whose block does not hold their number, and frees the blocks.
struct verify_numbered_and_free {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 words, u64* const* blocks, u64* wrong) const {
    u64 const me = global_thread_index();
    u64* const block = blocks[me];
    bool right = true;
    for (u64 i = 0; block && i < words; ++i) right = right && block[i] == me;
    if (!right) atomic_ref<u64, scope::system>{*wrong}.fetch_add(1, order::relaxed);
    heap.free(block);
  }
};

}  // namespace warpheap::test
