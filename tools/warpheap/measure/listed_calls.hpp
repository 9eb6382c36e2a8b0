// SPDX-License-Identifier: Apache-2.0
// Calls as users write them: thread blocks of 256, `if (i < calls)`, one malloc or one free in the
// kernel, and no launch bound. Bytes and blocks stand in lists. The device code of a tool with many
// allocators is large, and most of it is malloc. So scenarios that measure such kernels share these
// two, and prepare their lists in kernels without a heap.
#pragma once

#include "bounded_kernel.hpp"
#include "one_call.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

/// Kernel: call i asks for `bytes[i]`, and for nothing if that is 0.
struct ask_listed {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 const* bytes, void** blocks, u64 calls) const {
    u64 const i = global_thread_index();
    if (i < calls && bytes[i]) blocks[i] = heap.malloc(bytes[i]);
  }
};

/// Launches a call for each entry of `bytes`. Entries of `blocks` whose bytes are 0 stay as they
/// are.
template <class Allocator>
void launch_asking(basic_heap<Allocator>& heap, device_buffer<u64> const& bytes, device_buffer<void*> const& blocks,
                   u64 calls) {
  u64 const* const wanted = bytes.data();
  launch_unbounded(shape_for(calls), ask_listed{}, heap.ref(), wanted, blocks.data(), calls);
}

/// Launches a call of free for each entry of `blocks`; some may be null.
template <class Allocator>
void launch_freeing(basic_heap<Allocator>& heap, device_buffer<void*> const& blocks, u64 calls) {
  launch_unbounded(shape_for(calls), free_once{}, heap.ref(), blocks.data(), calls);
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
