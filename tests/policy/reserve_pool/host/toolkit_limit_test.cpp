// SPDX-License-Identifier: Apache-2.0
// The C library's heap behind the toolkit's allocator, which is held to its pool: nothing else
// limits it on the host backend.
#include <gmock/gmock.h>

#include "warpheap/all.hpp"
#include "warpheap/platform/device_buffer.hpp"

namespace warpheap { namespace {

struct ask_toolkit {
  void operator()(toolkit_heap::ref_type heap, void** blocks, u64 bytes) const {
    blocks[global_thread_index()] = heap.malloc(bytes);
  }
};

struct free_toolkit {
  void operator()(toolkit_heap::ref_type heap, void** blocks) const { heap.free(blocks[global_thread_index()]); }
};

TEST(ToolkitLimit, IsKept) {
  u64 const pool = 8 << 20;
  toolkit_heap const heap{pool};
  device_buffer<void*> const blocks(512);
  for (u64 const bytes : {65536, 16384, 65536}) {
    launch({2, 256}, ask_toolkit{}, heap.ref(), blocks.data(), bytes);
    u64 served = 0;
    for (void const* const each : blocks.to_host()) served += each != nullptr;
    EXPECT_LE(served * bytes, pool);
    EXPECT_GE(served * bytes, pool / 8 * 7) << "nearly all of it can be used, also again";
    launch({2, 256}, free_toolkit{}, heap.ref(), blocks.data());
    synchronize();
  }
  launch({1, 1}, ask_toolkit{}, heap.ref(), blocks.data(), u64{1} << 40);
  EXPECT_EQ(blocks.to_host()[0], nullptr);
}

}}  // namespace warpheap
