// SPDX-License-Identifier: Apache-2.0
// UAlloc and TBuddy as one.
#pragma once

#include "../heap/default_heap.hpp"
#include "../policy/creation/throughput.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// UAlloc and TBuddy as one.
using throughput_allocator = plain_allocator<creation::throughput<>>;

#if !defined(__CUDACC_RTC__)
/// UAlloc and TBuddy as one allocator.
using throughput_heap = basic_heap<throughput_allocator>;
#endif

}}  // namespace warpheap::WARPHEAP_BACKEND
