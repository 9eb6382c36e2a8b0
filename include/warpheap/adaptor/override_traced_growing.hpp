// SPDX-License-Identifier: Apache-2.0
// A replacement for override_growing.hpp that records what device code asks, as override_traced.hpp
// does for override.hpp:
//
//   nvcc -include warpheap/adaptor/override_traced_growing.hpp kernels.cu
//   warpheap::override_heap heap{warpheap::growth{.initial = 64_MiB, .limit = 8_GiB}};
//   heap.heap().poll();    // between kernels: grows by what was refused
//   WARPHEAP_TRACE=program.trace ./program
#pragma once

#include "../heap/growing_heap.hpp"
#include "trace/override_heap.hpp"

template <>
struct warpheap::override_allocator<> {
  using type = warpheap::traced_ref<warpheap::polled_allocator>;
};

#include "../heap/override.hpp"
