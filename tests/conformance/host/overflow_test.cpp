// SPDX-License-Identifier: Apache-2.0
// A heap with another behind it is one heap to its callers: half of the pool is in the host's
// memory. All claims hold but that one block may take both halves.
#include "../suite.hpp"
#include "warpheap/warpheap.hpp"

using namespace warpheap;

/// Host memory with mebibytes of unused addresses around it, so that no pool lies beside another.
class lonely_memory {
 public:
  static constexpr char const* name = "lonely_memory";
  static constexpr size_t around = 32 * conformance::mebibyte;

  void* acquire(size_t bytes) { return static_cast<u8*>(memory_.acquire(bytes + 2 * around)) + around; }

 private:
  reserve_pool::host_memory memory_;
};

using second_allocator =
    allocator<creation::slab_bitmap<>, distribution::none, oom::return_null, lonely_memory, alignment::shrink<16>>;
using overflowing_allocator = allocator<creation::slab_bitmap<>, distribution::none, oom::overflow_to<second_allocator>,
                                        reserve_pool::device_memory, alignment::shrink<16>>;

// With fewer schedules: its two heaps are slab_bitmap's, which have the suite of their own.
WARPHEAP_CONFORMANCE(slab_bitmap_overflowing, overflowing_allocator, conformance::contention::full, 4);
