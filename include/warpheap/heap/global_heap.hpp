// SPDX-License-Identifier: Apache-2.0
// A heap for the whole process beside CUDA's own: device code calls warpheap::malloc without naming
// a heap. Device malloc, free, new and delete stay CUDA's.
//
//   warpheap::global_heap heap{4_GiB};            host: the heap, for as long as it lives
//   void* p = warpheap::malloc(bytes);            device, in every unit that includes this
//   warpheap::free(p);
//
// It is the same heap as override.hpp's: units may include either header or both, and one object
// serves them all. See docs/guide/drop_in_replacement.md.
//
// The functions have internal linkage, since each unit has its own variable.
#pragma once

#include "override_heap.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// See basic_override_heap. A file that includes only this header overrides nothing.
using global_heap = override_heap;

/// At least `bytes` bytes from the process's heap; nullptr for 0 bytes, when there is no memory,
/// and if no heap is bound. These functions keep the promises of heap_ref's members.
WARPHEAP_DEVICE static inline void* malloc(size_t bytes) { return device_heap.malloc(bytes); }

/// Frees a block, whichever unit allocated it. It cannot free blocks of CUDA's heap, nor CUDA's
/// free ours.
WARPHEAP_DEVICE static inline void free(void* memory) { device_heap.free(memory); }

/// `count` objects of `size` bytes, zeroed.
WARPHEAP_DEVICE static inline void* calloc(size_t count, size_t size) { return device_heap.calloc(count, size); }

/// Changes the size of a block. Ends the kernel if the allocator does not know how much to copy.
WARPHEAP_DEVICE static inline void* realloc(void* memory, size_t bytes) { return device_heap.realloc(memory, bytes); }

/// At least `bytes` bytes at a multiple of `alignment`.
WARPHEAP_DEVICE static inline void* aligned_alloc(size_t alignment, size_t bytes) {
  return device_heap.aligned_alloc(alignment, bytes);
}

}}  // namespace warpheap::WARPHEAP_BACKEND
