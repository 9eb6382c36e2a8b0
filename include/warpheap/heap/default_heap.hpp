// SPDX-License-Identifier: Apache-2.0
// The default heap, and the shortest way to compose others. Named heaps are in allocator/.
#pragma once

#include "../policy/alignment/shrink.hpp"
#include "../policy/creation/slab_bitmap.hpp"
#include "../policy/distribution/none.hpp"
#include "../policy/oom/return_null.hpp"
#include "../policy/reserve_pool/device_memory.hpp"
#include "allocator.hpp"
#include "heap.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

#if defined(__CUDACC_RTC__)
namespace reserve_pool {
class device_memory;
class external;
class host_memory;
class toolkit_limit;
class zeroed_memory;
}  // namespace reserve_pool
#endif

/// A creation policy with the simplest other four.
template <class Creation>
using plain_allocator =
    allocator<Creation, distribution::none, oom::return_null, reserve_pool::device_memory, alignment::shrink<16>>;

/// A class, so that the names of kernels in profiles and sanitizer reports stay short.
struct default_allocator : plain_allocator<creation::slab_bitmap<>> {
  using plain_allocator<creation::slab_bitmap<>>::plain_allocator;
};

/// The default allocator for programs that rely on accidents of CUDA's heap: memory is zero until a
/// block first uses it, and no two blocks share a sector of 32 bytes, the smallest unit of a cache.
using forgiving_allocator = allocator<creation::slab_bitmap<>, distribution::none, oom::return_null,
                                      reserve_pool::zeroed_memory, alignment::shrink<32>>;

/// For policies whose chunks of 24 bytes are aligned only to 8.
template <class Creation>
using finely_aligned_allocator =
    allocator<Creation, distribution::none, oom::return_null, reserve_pool::device_memory, alignment::shrink<8>>;

/// The default heap's reference for kernels: 16 bytes, trivially copyable.
using heap_ref = default_allocator;
static_assert(sizeof(heap_ref) == 16);

#if !defined(__CUDACC_RTC__)
/// The default heap over device memory.
using heap = basic_heap<default_allocator>;
#endif

}}  // namespace warpheap::WARPHEAP_BACKEND
