// SPDX-License-Identifier: Apache-2.0
// refused: this allocator's pool grows
#include <warpheap/heap/growing_heap.hpp>
#include <warpheap/heap/override_allocator.hpp>

template <>
struct warpheap::override_allocator<> {
  using type = warpheap::polled_allocator;
};

#include <warpheap/heap/override_heap.hpp>

// How large it may become is not said.
warpheap::override_heap heap{size_t{1} << 30};
