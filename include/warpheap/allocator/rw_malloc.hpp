// SPDX-License-Identifier: Apache-2.0
// Runs of units, found by random walks.
#pragma once

#include "../heap/default_heap.hpp"
#include "../policy/creation/rw_malloc.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// Runs of 16-byte units, found by random walks.
using rw_malloc_allocator = plain_allocator<creation::rw_malloc<>>;

#if !defined(__CUDACC_RTC__)
/// Runs of 16-byte units, found by random walks.
using rw_malloc_heap = basic_heap<rw_malloc_allocator>;
#endif

}}  // namespace warpheap::WARPHEAP_BACKEND
