// SPDX-License-Identifier: Apache-2.0
// Calls of any heap by generic code: at a type's alignment, with the caller's place where the heap
// takes one, and with a replacement where the heap has no realloc.
#pragma once

#include "../policy/creation/report.hpp"
#include "../util/source_site.hpp"
#include "warp_copy.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace detail {

/// What a heap promises. A heap without traits is taken to align blocks to 16, as CUDA's malloc
/// does.
template <class Heap>
WARPHEAP_HOST_DEVICE constexpr allocator_traits traits_of() {
  if constexpr (requires { Heap::traits.alignment; }) return Heap::traits;
  else return {};
}

/// Whether malloc and realloc align every block of a multiple of `Alignment` bytes to `Alignment`.
template <class Heap, size_t Alignment>
inline constexpr bool malloc_aligns = Alignment <= traits_of<Heap>().alignment
                                      || Alignment <= traits_of<Heap>().multiples_aligned_up_to;

/// A block of `bytes` bytes, a multiple of `Alignment`, at a multiple of `Alignment`; nullptr if
/// there is no memory.
template <size_t Alignment, class Heap>
WARPHEAP_DEVICE void* allocate(Heap const& heap, size_t bytes, [[maybe_unused]] source_site site) {
  if constexpr (malloc_aligns<Heap, Alignment>) {
    if constexpr (requires { heap.malloc(bytes, site); }) return heap.malloc(bytes, site);
    else return heap.malloc(bytes);
  } else {
    static_assert(
        requires { heap.aligned_alloc(Alignment, bytes); },
        "the type is aligned to more than this heap aligns blocks to, and the heap has no aligned_alloc");
    if constexpr (requires { heap.aligned_alloc(Alignment, bytes, site); })
      return heap.aligned_alloc(Alignment, bytes, site);
    else return heap.aligned_alloc(Alignment, bytes);
  }
}

/// Frees a block; nullptr does nothing.
template <class Heap>
WARPHEAP_DEVICE void deallocate(Heap const& heap, void* memory, [[maybe_unused]] source_site site) {
  if constexpr (requires { heap.free(memory, site); }) heap.free(memory, site);
  else heap.free(memory);
}

/// Changes the size of a block, of which `old_bytes` bytes are in use, to `bytes`, a multiple of
/// `Alignment` and not 0. nullptr if there is no memory; the block is then unchanged.
template <size_t Alignment, class Heap>
WARPHEAP_DEVICE void* reallocate(Heap const& heap, void* memory, size_t old_bytes, size_t bytes, source_site site) {
  if constexpr (malloc_aligns<Heap, Alignment> && requires { heap.realloc(memory, old_bytes, bytes, site); }) {
    return heap.realloc(memory, old_bytes, bytes, site);
  } else if constexpr (malloc_aligns<Heap, Alignment> && requires { heap.realloc(memory, old_bytes, bytes); }) {
    return heap.realloc(memory, old_bytes, bytes);
  } else {
    void* const moved = allocate<Alignment>(heap, bytes, site);
    bool const copies = memory && moved;
    size_t const kept = old_bytes < bytes ? old_bytes : bytes;
    warp_copy<traits_of<Heap>().alignment>(moved, memory, copies ? kept : 0);
    deallocate(heap, copies ? memory : nullptr, site);
    return moved;
  }
}

/// A block and its size.
struct sized_block {
  void* memory;
  u64 bytes;
};

/// reallocate() that also returns the new block's size, as a function that is not inlined: a malloc
/// is tens of KiB of machine code, and all types that need no more alignment than the heap's share
/// one copy.
template <size_t Alignment, class Heap>
WARPHEAP_COLD sized_block resized(Heap heap, void* memory, u64 old_bytes, u64 bytes, source_site site) {
  void* const moved = reallocate<Alignment>(heap, memory, old_bytes, bytes, site);
  if constexpr (requires { heap.usable_size(moved); })
    if (moved) {
      u64 const usable = heap.usable_size(moved);
      return {moved, usable > bytes ? usable : bytes};
    }
  return {moved, bytes};
}

}}}  // namespace warpheap::WARPHEAP_BACKEND::detail
