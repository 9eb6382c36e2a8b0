// SPDX-License-Identifier: Apache-2.0
// A heap for the whole process beside CUDA's own: device code calls warpheap::malloc without naming
// a heap. Device malloc, free, new and delete stay CUDA's.
//
//   warpheap::global_heap heap{4_GiB};            host: the heap, for as long as it lives
//   void* p = warpheap::malloc(bytes);            device, in every unit that includes this
//   warpheap::free(p);
//
// It is the same heap as override.hpp's: units may include either header or both, and one object
// serves them all. docs/guide/drop_in_replacement.md has the rest.
//
// The functions have internal linkage, since each unit has a variable of its own.
#pragma once

#include "override_heap.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// basic_override_heap says what it does; nothing is overridden where only this header is included.
using global_heap = override_heap;

/// At least `bytes` bytes of the process's heap; nullptr for 0 bytes, when there is no memory, and
/// where no heap is bound. These functions promise what the members of heap_ref promise.
WARPHEAP_DEVICE static inline void* malloc(size_t bytes) { return device_heap.malloc(bytes); }

/// Gives a block back, whichever unit allocated it. Blocks of CUDA's heap are not ours to free, nor
/// ours CUDA's.
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
