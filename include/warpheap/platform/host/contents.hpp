// SPDX-License-Identifier: Apache-2.0
// Checks the contents of blocks of memory: which lane owns a block, and whether the next owner's
// accesses come after the last owner's.
//
// Plain accesses to a block are no scheduling points, and the memory model does not see them. So a
// kernel says when it owns a block:
//
//   void* const memory = heap.malloc(bytes);
//   contents::acquire(memory, bytes);
//   ... any accesses ...
//   contents::release(memory, bytes);
//   heap.free(memory);
//
// In deterministic mode a run fails with a schedule_error if a block is acquired that overlaps an
// owned one, or if something is released that is not exactly an owned block. With weak memory it
// also fails if the lane that acquires does not know all that the lane that released knew: then an
// order is missing on the way from free to malloc, and a GPU may mix the accesses of the two.
// Owned blocks stay so from kernel to kernel, until their device memory is deallocated or
// forgotten.
//
// Kernels in another mode are not seen; all kernels that share a pool must be deterministic or none
// of them. ThreadSanitizer sees the accesses themselves, so there this does nothing: a lock here
// would order the lanes that it watches.
#pragma once

#include "content_ranges.hpp"

namespace warpheap::host {

struct contents {
  /// The calling lane owns `bytes` bytes at `begin` from now on; null is nothing. To be called
  /// after the allocation.
  static void acquire(void const* begin, size_t bytes) { check_range(begin, bytes, &detail::content_ranges::acquire); }

  /// The calling lane, or those that it speaks for, have done their last access to the block. To be
  /// called before the deallocation.
  static void release(void const* begin, size_t bytes) { check_range(begin, bytes, &detail::content_ranges::release); }

  /// Host code: nothing there is owned from now on, as after the reset of a heap.
  static void forget(void const* begin, size_t bytes) {
    u64 const address = reinterpret_cast<u64>(begin);
    detail::all_contents().forget(address, address + bytes);
  }

 private:
  using act = std::string (detail::content_ranges::*)(detail::worker&, u64, u64);

  [[gnu::noinline]] static void check_range(void const* begin, size_t bytes, act what) {
    auto* const here = detail::this_worker();
    if (detail::under_tsan || !here || !here->deterministic() || !begin || bytes == 0) return;
    u64 const address = reinterpret_cast<u64>(begin);
    auto fault = (detail::all_contents().*what)(*here, address, address + bytes);
    if (!fault.empty()) here->fail(static_cast<std::string&&>(fault));
  }
};

}  // namespace warpheap::host
