// SPDX-License-Identifier: Apache-2.0
// TBuddy: pages as a buddy system.
#pragma once

#include "../heap/default_heap.hpp"
#include "../policy/creation/tbuddy.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// Powers of two of 4 KiB pages, split and merged.
using tbuddy_allocator = plain_allocator<creation::tbuddy<>>;

#if !defined(__CUDACC_RTC__)
/// Powers of two of 4 KiB pages, split and merged.
using tbuddy_heap = basic_heap<tbuddy_allocator>;
#endif

}}  // namespace warpheap::WARPHEAP_BACKEND
