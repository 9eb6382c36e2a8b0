// SPDX-License-Identifier: Apache-2.0
// refused: this allocator's pool has one size, polled_allocator
#include <warpheap/heap/growing_heap.hpp>
#include <warpheap/heap/override_heap.hpp>

// The allocator behind malloc is the default one, whose pool has one size.
warpheap::override_heap heap{warpheap::growth{.initial = 1 << 21, .limit = size_t{1} << 30}};
