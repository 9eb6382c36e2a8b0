// SPDX-License-Identifier: Apache-2.0
// The default heap's C functions, warpheap_malloc and so on: see c_functions.hpp.
#pragma once

#include "c_functions.hpp"
#include "default_heap.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// The heap whose handle() is `handle`.
WARPHEAP_DEVICE inline heap_ref heap_of(u64 handle) { return ref_of<heap_ref>(handle); }

}}  // namespace warpheap::WARPHEAP_BACKEND

WARPHEAP_C_FUNCTIONS(warpheap, warpheap::default_allocator)
