// SPDX-License-Identifier: Apache-2.0
// ScatterAlloc.
#pragma once

#include "../heap/default_heap.hpp"
#include "../policy/creation/scatter.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// ScatterAlloc.
using scatter_allocator = plain_allocator<creation::scatter<>>;

#if !defined(__CUDACC_RTC__)
/// ScatterAlloc behind the same interface.
using scatter_heap = basic_heap<scatter_allocator>;
#endif

}}  // namespace warpheap::WARPHEAP_BACKEND
