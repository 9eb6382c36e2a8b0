// SPDX-License-Identifier: Apache-2.0
// References to heaps in variables that kernels find by name. Every named allocator can be one, and
// is initialised when the program is loaded, without code.
#include <gtest/gtest.h>

#include "support/schedules.hpp"
#include "warpheap/all.hpp"
#include "warpheap/platform/device_buffer.hpp"

// Where a variable lives on a GPU. The host has one place for all, and checks here that no code
// runs to initialise it.
#if defined(__CUDACC__)
#define TEST_DEVICE __device__
#define TEST_CONSTANT __constant__
#define TEST_MANAGED __managed__
#else
#define TEST_DEVICE constinit
#define TEST_CONSTANT constinit
#define TEST_MANAGED constinit
#endif

namespace device_variable_test {

using namespace warpheap;
using namespace warpheap::literals;

TEST_DEVICE heap_ref in_device_memory;
TEST_CONSTANT heap_ref in_constant_memory;
TEST_MANAGED heap_ref in_managed_memory;

using overflowing = allocator<creation::slab_bitmap<>, distribution::warp_coalesce, oom::overflow_to<heap_ref>,
                              reserve_pool::device_memory, alignment::shrink<16>>;

// One of each other kind, which only has to compile.
TEST_DEVICE toolkit_allocator toolkit;
TEST_DEVICE halloc_allocator halloc;
TEST_DEVICE ring_buffer_allocator ring_buffer;
TEST_DEVICE queue_pages_allocator page_queues;
TEST_DEVICE queue_chunks_virtual_allocator chunk_queues;
TEST_DEVICE rw_allocator walk;
TEST_DEVICE rw_bitmap_allocator bitmap_walk;
TEST_DEVICE corw_allocator collaborative_walk;
TEST_DEVICE rw_malloc_allocator unit_walk;
TEST_CONSTANT scatter_allocator scatter;
TEST_CONSTANT tbuddy_allocator tbuddy;
TEST_CONSTANT ualloc_allocator ualloc;
TEST_MANAGED throughput_allocator throughput;
TEST_MANAGED overflowing overflow;

/// Allocates through each variable, and frees through the next.
struct allocate_by_name {
  WARPHEAP_DEVICE void operator()(u32* faults) const {
    auto const me = static_cast<u32>(global_thread_index());
    u32* const blocks[] = {static_cast<u32*>(in_device_memory.malloc(24 + me)),
                           static_cast<u32*>(in_constant_memory.malloc(48)),
                           static_cast<u32*>(in_managed_memory.calloc(5, me + 1))};
    for (u32* const block : blocks) {
      if (!block || !in_device_memory.owns(block)) faults[me] += 1;
      else *block = me;
    }
    for (u32* const block : blocks)
      if (block && *block != me) faults[me] += 100;
    in_constant_memory.free(blocks[0]);
    in_managed_memory.free(blocks[1]);
    in_device_memory.free(blocks[2]);
  }
};

TEST(DeviceVariable, KernelsFindTheirHeapByName) {
  test::for_each_schedule(20, [] {
    warpheap::heap heap{1_MiB};
    set_device_variable(in_device_memory, heap.ref());
    set_device_variable(in_constant_memory, heap.ref());
    in_managed_memory = heap.ref();
    device_buffer<u32> const faults(80);
    launch({2, 40}, allocate_by_name{}, faults.data());
    synchronize();
    EXPECT_EQ(faults.to_host(), std::vector<u32>(80));
    auto const counts = heap.statistics();
    EXPECT_EQ(counts.live_blocks + counts.double_frees + counts.foreign_frees, 0u);
  });
}

}  // namespace device_variable_test
