// SPDX-License-Identifier: Apache-2.0
// A replacement for override.hpp that records what device code asks of malloc, free, new and
// delete, for `warpheap replay`:
//
//   nvcc -include warpheap/adaptor/override_traced.hpp kernels.cu
//   warpheap::override_heap heap{4_GiB};              as with override.hpp
//   WARPHEAP_TRACE=program.trace ./program            saved when the heap is destroyed
//
// heap.heap().save(path) saves it at another time. docs/guide/traces.md.
#pragma once

#include "trace/override_heap.hpp"

template <>
struct warpheap::override_allocator<> {
  using type = warpheap::traced_ref<warpheap::default_allocator>;
};

#include "../heap/override.hpp"
