// SPDX-License-Identifier: Apache-2.0
// UAlloc's bins.
#pragma once

#include "../heap/default_heap.hpp"
#include "../policy/creation/ualloc.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// UAlloc's bins alone.
using ualloc_allocator = plain_allocator<creation::ualloc<>>;

#if !defined(__CUDACC_RTC__)
/// UAlloc's bins alone: blocks of up to 1 KiB.
using ualloc_heap = basic_heap<ualloc_allocator>;
#endif

}}  // namespace warpheap::WARPHEAP_BACKEND
