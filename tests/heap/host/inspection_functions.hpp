// SPDX-License-Identifier: Apache-2.0
// One set of inspection functions for each allocator.
#pragma once

#include "warpheap/heap/c_inspection.hpp"

// NOLINTBEGIN(misc-definitions-in-headers): only other_inspection_unit.cpp gets definitions
WARPHEAP_C_INSPECTION(inspect_slab_bitmap, warpheap::default_allocator)
WARPHEAP_C_INSPECTION(inspect_polled, warpheap::polled_allocator)
WARPHEAP_C_INSPECTION(inspect_ring_buffer, warpheap::ring_buffer_allocator)
WARPHEAP_C_INSPECTION(inspect_rw, warpheap::rw_allocator)
WARPHEAP_C_INSPECTION(inspect_rw_bitmap, warpheap::rw_bitmap_allocator)
WARPHEAP_C_INSPECTION(inspect_corw, warpheap::corw_allocator)
WARPHEAP_C_INSPECTION(inspect_rw_malloc, warpheap::rw_malloc_allocator)
WARPHEAP_C_INSPECTION(inspect_scatter, warpheap::scatter_allocator)
WARPHEAP_C_INSPECTION(inspect_halloc, warpheap::halloc_allocator)
WARPHEAP_C_INSPECTION(inspect_tbuddy, warpheap::tbuddy_allocator)
WARPHEAP_C_INSPECTION(inspect_ualloc, warpheap::ualloc_allocator)
WARPHEAP_C_INSPECTION(inspect_throughput, warpheap::throughput_allocator)
// NOLINTEND(misc-definitions-in-headers)
