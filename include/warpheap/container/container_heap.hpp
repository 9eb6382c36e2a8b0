// SPDX-License-Identifier: Apache-2.0
// What containers ask of a heap. They keep no heap, so that they are small and may be moved between
// heaps' users: each call that may allocate or free takes it as its first argument.
#pragma once

#include "../platform/simt.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// The reference to a heap, as kernels hold it: that of any allocator, adaptor or arena.
template <class H>
concept container_heap = requires(H const heap, size_t bytes, void* memory) {
  {static_cast<void*>(heap.malloc(bytes))};
  heap.free(memory);
};

}}  // namespace warpheap::WARPHEAP_BACKEND
