// SPDX-License-Identifier: Apache-2.0
// CUDA's own allocator, or the C library's on the host backend.
#pragma once

#include "../heap/default_heap.hpp"
#include "../policy/creation/toolkit.hpp"
#include "../policy/reserve_pool/toolkit_limit.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// CUDA's own allocator, or the C library's on the host backend.
using toolkit_allocator = allocator<creation::toolkit, distribution::none, oom::return_null,
                                    reserve_pool::toolkit_limit, alignment::shrink<16>>;

#if !defined(__CUDACC_RTC__)
/// The toolkit's own device-side malloc behind the same interface.
using toolkit_heap = basic_heap<toolkit_allocator>;
#endif

}}  // namespace warpheap::WARPHEAP_BACKEND
