// SPDX-License-Identifier: Apache-2.0
// override.hpp with polled_allocator behind the names: a heap that grows between kernels. To let
// kernels wait for memory, a program names waiting_allocator itself (override_allocator.hpp).
// docs/guide/drop_in_replacement.md has an example.
//
//   nvcc -include warpheap/heap/override_growing.hpp kernels.cu
//   warpheap::override_heap heap{warpheap::growth{.initial = 64_MiB, .limit = 8_GiB}};
//   heap.heap().poll();    // between kernels: grows by what was refused
#pragma once

#include "growing_heap.hpp"
#include "override_allocator.hpp"

template <>
struct warpheap::override_allocator<> {
  using type = warpheap::polled_allocator;
};

#include "override.hpp"
