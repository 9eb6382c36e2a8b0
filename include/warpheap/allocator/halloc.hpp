// SPDX-License-Identifier: Apache-2.0
// Halloc.
#pragma once

#include "../heap/default_heap.hpp"
#include "../policy/creation/halloc.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// Slabs of chunks, found by a hash of a counter; TBuddy above 3 KiB.
using halloc_allocator = finely_aligned_allocator<creation::halloc<>>;

#if !defined(__CUDACC_RTC__)
/// Halloc: slabs of chunks, found by a hash of a counter.
using halloc_heap = basic_heap<halloc_allocator>;
#endif

}}  // namespace warpheap::WARPHEAP_BACKEND
