// SPDX-License-Identifier: Apache-2.0
// Warpheap: dynamic memory for GPU threads. This header has the default heap and its policies:
//
//   warpheap::heap heap{4_GiB};                       host: owns the pool
//   kernel<<<grid, block>>>(heap.ref());              heap_ref: 16 bytes, by value
//   void* p = ref.malloc(bytes);  ref.free(p);        device: any thread, any time
//
// Other allocators: <warpheap/allocator/halloc.hpp> and its neighbours, or <warpheap/all.hpp>. Your
// own: basic_heap<allocator<creation, distribution, oom, reserve_pool, alignment>>.
#pragma once

#include "heap/allocator.hpp"
#include "heap/default_heap.hpp"
#include "heap/heap.hpp"
#include "platform/simt.hpp"
#include "policy/alignment/shrink.hpp"
#include "policy/creation/slab_bitmap.hpp"
#include "policy/distribution/none.hpp"
#include "policy/distribution/warp_coalesce.hpp"
#include "policy/oom/overflow_to.hpp"
#include "policy/oom/return_null.hpp"
#include "policy/oom/trap.hpp"
#include "policy/reserve_pool/device_memory.hpp"
#include "policy/reserve_pool/external.hpp"
#include "policy/reserve_pool/host_memory.hpp"
#include "policy/reserve_pool/memory_resource.hpp"
#include "version.hpp"

#if !defined(__CUDACC_RTC__)
namespace warpheap::literals {

/// 2^10 bytes.
consteval unsigned long long operator""_KiB(unsigned long long count) { return count << 10; }
/// 2^20 bytes.
consteval unsigned long long operator""_MiB(unsigned long long count) { return count << 20; }
/// 2^30 bytes.
consteval unsigned long long operator""_GiB(unsigned long long count) { return count << 30; }

}  // namespace warpheap::literals
#endif
