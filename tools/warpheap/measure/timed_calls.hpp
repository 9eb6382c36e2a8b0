// SPDX-License-Identifier: Apache-2.0
// One call a thread by the multiprocessor's clock: each thread's cycles are read around its malloc
// or free.
//
// Clocks of two multiprocessors are unrelated, so cycles are differences on one. They count what a
// thread waits, not what the device does: of two allocators with the same cycles one may take
// longer for all threads.
#pragma once

#include "blocks.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

/// What thread i asks for: its entry of a list, or the same as all other threads if there is none.
struct wanted_bytes {
  u64 all = 0;
  u64 const* list = nullptr;

  WARPHEAP_DEVICE u64 of(u64 i) const { return list ? list[i] : all; }
};

/// Kernel: thread i allocates, if it wants anything. Cycles are 0 where there was no call.
struct allocate_timed {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, wanted_bytes wanted, void** blocks, u64* cycles, u64 threads) const {
    u64 const i = global_thread_index();
    if (i >= threads) return;
    u64 const bytes = wanted.of(i);
    if (!bytes) {  // and so the number is there before the clock is read
      cycles[i] = 0;
      return;
    }
    u64 const start = simt::clock();
    void* const block = heap.malloc(bytes);
    // A store that no compiler moves: the pointer is there before the clock is read. relaxed: the
    // next kernel reads it.
    atomic_ref<u64>{*reinterpret_cast<u64*>(&blocks[i])}.store(reinterpret_cast<u64>(block), order::relaxed);
    cycles[i] = simt::clock() - start;
  }
};

/// Kernel: thread i frees its block, if it has one.
struct free_timed {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, void** blocks, u64* cycles, u64 threads) const {
    u64 const i = global_thread_index();
    if (i >= threads) return;
    void* const block = blocks[i];
    cycles[i] = 0;
    if (!block) return;  // and so the pointer is there before the clock is read
    u64 const start = simt::clock();
    heap.free(block);
    cycles[i] = simt::clock() - start;
    blocks[i] = nullptr;
  }
};

/// Calls by the clock for each entry of `blocks`, on `heap`, which is a heap or has the same calls;
/// those of malloc ask for `wanted`.
template <class Heap>
void launch_timed_asking(Heap heap, launch_shape shape, wanted_bytes wanted, void** blocks,
                         device_buffer<u64> const& cycles) {
  launch(shape, allocate_timed{}, heap, wanted, blocks, cycles.data(), cycles.size());
}
template <class Heap>
void launch_timed_freeing(Heap heap, launch_shape shape, void** blocks, device_buffer<u64> const& cycles) {
  launch(shape, free_timed{}, heap, blocks, cycles.data(), cycles.size());
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
