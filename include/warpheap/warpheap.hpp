// Warpheap: dynamic memory for GPU threads. This header is the whole public API:
//
//   warpheap::heap heap{4_GiB};                       host: owns the pool
//   kernel<<<grid, block>>>(heap.ref());              heap_ref: 16 bytes, by value
//   void* p = ref.malloc(bytes);  ref.free(p);        device: any thread, any time
//
// Other allocators: basic_heap<allocator<creation, distribution, oom, reserve_pool, alignment>>.
#pragma once

#include "heap/allocator.hpp"
#include "heap/heap.hpp"
#include "platform/simt.hpp"
#include "policy/alignment/shrink.hpp"
#include "policy/creation/slab_bitmap.hpp"
#include "policy/creation/toolkit.hpp"
#include "policy/distribution/none.hpp"
#include "policy/oom/return_null.hpp"
#include "policy/reserve_pool/device_memory.hpp"
#include "version.hpp"

namespace warpheap::inline WARPHEAP_BACKEND {

#if defined(__CUDACC_RTC__)
namespace reserve_pool {
struct device_memory;
}
#endif

/// A creation policy with the plainest other four.
template <class Creation>
using plain_allocator =
    allocator<Creation, distribution::none, oom::return_null, reserve_pool::device_memory, alignment::shrink<16>>;

using default_allocator = plain_allocator<creation::slab_bitmap<>>;
using toolkit_allocator = plain_allocator<creation::toolkit>;

/// What a kernel takes of the default heap: 16 bytes, trivially copyable.
using heap_ref = default_allocator;
static_assert(sizeof(heap_ref) == 16);

#if !defined(__CUDACC_RTC__)
/// The default heap over device memory.
using heap = basic_heap<default_allocator>;
/// The toolkit's own device-side malloc behind the same interface.
using toolkit_heap = basic_heap<toolkit_allocator>;
#endif

}  // namespace warpheap::inline WARPHEAP_BACKEND

#if !defined(__CUDACC_RTC__)
namespace warpheap::literals {

consteval unsigned long long operator""_KiB(unsigned long long count) { return count << 10; }
consteval unsigned long long operator""_MiB(unsigned long long count) { return count << 20; }
consteval unsigned long long operator""_GiB(unsigned long long count) { return count << 30; }

}  // namespace warpheap::literals
#endif
