// SPDX-License-Identifier: Apache-2.0
// The heap that a unit's device code finds without a parameter, and its queries. override.hpp puts
// it behind malloc, global_heap.hpp behind warpheap::malloc. The host binds it: override_heap.hpp.
#pragma once

#if defined(__CUDACC_RTC__)
#error \
    "the process's heap is bound by nvcc's units; code for NVRTC takes a heap_ref, or calls the functions of c_interface.hpp"
#include <compilation_stops_here>
#endif

#include "bound_heap.hpp"
#include "override_allocator.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// The unit's heap: one `static` variable per unit. With -rdc=true all of them are bound to the
/// same heap, so it does not matter from which unit the linker takes malloc. There the variable is
/// not `__constant__`: nvlink 13.0 stores constants of several units that begin alike only once,
/// but places their symbols as if each were stored.
#if defined(__CUDACC_RDC__)
static __device__ bound_heap<override_allocator<>::type> device_heap;
#elif defined(__CUDACC__)
static __constant__ bound_heap<override_allocator<>::type> device_heap;
#else
static bound_heap<override_allocator<>::type> device_heap;
#endif

// Of internal linkage, since each unit has its own variable. Templates, so that a function exists
// only if the allocator has it; the member's name depends on Bound for that reason.

/// Bytes that may be used at `memory`, a block of the process's heap; 0 for anything else, and if
/// no heap is bound.
template <class Bound = decltype(device_heap)>
WARPHEAP_DEVICE static size_t usable_size(void const* memory) requires Bound::knows_sizes {
  return static_cast<Bound const&>(device_heap).usable_size(memory);
}

/// Whether `memory` is a live block of the process's heap.
template <class Bound = decltype(device_heap)>
WARPHEAP_DEVICE static bool owns(void const* memory) requires Bound::knows_owners {
  return static_cast<Bound const&>(device_heap).owns(memory);
}

/// Blocks of `bytes` bytes that could be allocated from the process's heap now; 0 if none is bound.
/// Exact when the heap is quiet. Visits the whole heap: not for inner loops.
template <class Bound = decltype(device_heap)>
WARPHEAP_DEVICE static u64 available_slots(size_t bytes) requires Bound::counts_its_slots {
  return static_cast<Bound const&>(device_heap).available_slots(bytes);
}

/// available_slots() by the lanes of `mask` together. All of them call; those with the same size
/// share the work.
template <class Bound = decltype(device_heap)>
WARPHEAP_DEVICE static u64 available_slots_warp(lane_mask mask, size_t bytes) requires Bound::counts_its_slots_by_warp {
  return static_cast<Bound const&>(device_heap).available_slots_warp(mask, bytes);
}

}}  // namespace warpheap::WARPHEAP_BACKEND
