// SPDX-License-Identifier: Apache-2.0
// When a slab leaves the index of its class and when it comes back.
#include "pool_fixture.hpp"

namespace warpheap::test { namespace {

/// Takes `blocks` blocks of 1 KiB one after the other, gives them back, and says after each call
/// whether slab 0 was off the index. One lane.
struct fill_and_empty {
  WARPHEAP_DEVICE void operator()(slab_allocator heap, u32 blocks, void** held, u32* off) const {
    for (u32 i = 0; i < blocks; ++i) {
      held[i] = heap.create(1024);
      off[i] = heap.table().load(0).is_unlisted();
    }
    for (u32 i = 0; i < blocks; ++i) {
      heap.destroy(held[i]);
      off[blocks + i] = heap.table().load(0).is_unlisted();
    }
  }
};

TEST(SlabBitmapLimits, ASlabIsLeftBeforeItIsFullAndPartialAgainWithAGap) {
  u32 const blocks = 16;  // 16 KiB of 1 KiB each: left at 15, partial again at 13
  tiny_pool const pool{1};
  device_buffer<void*> held(blocks);
  device_buffer<u32> off(2 * blocks);
  launch({1, 1}, fill_and_empty{}, pool.allocator(), blocks, held.data(), off.data());
  synchronize();
  for (u32 used = 1; used <= blocks; ++used) EXPECT_EQ(off[used - 1], used >= 15) << used << " blocks, growing";
  for (u32 used = 0; used < blocks; ++used)
    EXPECT_EQ(off[2 * blocks - 1 - used], used > 13) << used << " blocks, shrinking";
}

}}  // namespace warpheap::test
