// SPDX-License-Identifier: Apache-2.0
// Traces for tests, and one that a kernel leaves.
#pragma once

#include "warpheap/adaptor/trace.hpp"
#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/warpheap.hpp"

namespace warpheap::tool {

/// A malloc by a thread, or a free of record `block`.
inline traced_call asks(u32 thread_block, u32 thread, u64 bytes = 64) {
  return {.kind = call_kind::malloc, .thread = thread, .thread_block = thread_block, .bytes = bytes};
}
inline traced_call frees(u32 thread_block, u32 thread, u64 block) {
  return {.kind = call_kind::free, .thread = thread, .thread_block = thread_block, .block = block};
}
/// A call by lanes that called with the one before.
inline traced_call with_them(traced_call call) {
  call.first = false;
  return call;
}
inline constexpr traced_call kernel_begins{.kind = call_kind::kernel};
inline constexpr traced_call heap_is_reset{.kind = call_kind::reset};

/// Kernel: each thread has a block from the kernel before, which it moves, frees, or passes on.
struct use_blocks {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap, void** blocks, u64 threads, u64 step) const {
    u64 const me = global_thread_index();
    if (me >= threads) return;
    u64 const bytes = 1 + (me * 37 + step * 101) % 700;
    void* const held = blocks[me];
    if ((me + step) % 3 == 0) {
      blocks[me] = heap.realloc(held, 1, bytes);
      return;
    }
    heap.free(held);
    if (me % 5 == 0) blocks[me] = heap.calloc(1, bytes);
    else blocks[me] = me % 7 == 0 ? heap.aligned_alloc(64, bytes) : heap.malloc(bytes);
    heap.free(heap.malloc(24));
  }
};

/// What use_blocks leaves: mallocs, callocs, aligned_allocs, reallocs and frees in four kernels.
inline call_trace trace_of_kernels() {
  traced<heap> recorder{u64{1} << 20};
  device_buffer<void*> const blocks(150);
  for (u64 step = 0; step < 4; ++step) launch({3, 50}, use_blocks{}, recorder.ref(), blocks.data(), u64{150}, step);
  synchronize();
  return recorder.trace();
}

}  // namespace warpheap::tool
