// SPDX-License-Identifier: Apache-2.0
// A user's program: every thread of a kernel allocates a block, writes to it, and frees it.
// Compiled for either backend.
#include <warpheap/platform/device_buffer.hpp>
#include <warpheap/warpheap.hpp>

#include <cstdio>

struct allocate_and_free {
  WARPHEAP_DEVICE void operator()(warpheap::heap_ref heap, warpheap::u32* served) const {
    auto* const number = static_cast<warpheap::u64*>(heap.malloc(sizeof(warpheap::u64)));
    if (!number) return;
    *number = warpheap::global_thread_index();
    if (*number == warpheap::global_thread_index())
      warpheap::atomic_ref<warpheap::u32>{*served}.fetch_add(1, warpheap::order::relaxed);
    heap.free(number);
  }
};

int main() {
  warpheap::heap heap{std::size_t{64} << 20};
  warpheap::device_buffer<warpheap::u32> served{1};
  warpheap::launch({4, 64}, allocate_and_free{}, heap.ref(), served.data());
  warpheap::synchronize();
  std::printf("%u of 256 threads were served, %llu blocks are live\n", served[0], heap.statistics().live_blocks);
  return served[0] == 256 && heap.statistics().live_blocks == 0 ? 0 : 1;
}
