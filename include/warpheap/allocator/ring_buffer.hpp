// SPDX-License-Identifier: Apache-2.0
// A ring of frames.
#pragma once

#include "../heap/default_heap.hpp"
#include "../policy/creation/ring_buffer.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// Frames of one size in a ring.
using ring_buffer_allocator = plain_allocator<creation::ring_buffer<>>;

#if !defined(__CUDACC_RTC__)
/// Frames of 8 KiB behind a push and a pop index.
using ring_buffer_heap = basic_heap<ring_buffer_allocator>;
#endif

}}  // namespace warpheap::WARPHEAP_BACKEND
