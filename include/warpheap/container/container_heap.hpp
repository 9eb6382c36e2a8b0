// SPDX-License-Identifier: Apache-2.0
// What containers require of a heap. They do not store a heap, so they are small, and threads with
// other references to the heap can use them: each call that may allocate or free takes the heap as
// its first argument.
#pragma once

#include "../platform/simt.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// The reference to a heap that kernels hold: that of any allocator, adaptor or arena.
template <class H>
concept container_heap = requires(H const heap, size_t bytes, void* memory) {
  {static_cast<void*>(heap.malloc(bytes))};
  heap.free(memory);
};

}}  // namespace warpheap::WARPHEAP_BACKEND
