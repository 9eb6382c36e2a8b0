// SPDX-License-Identifier: Apache-2.0
// reports: SUMMARY: AddressSanitizer: use-after-poison .*use_after_free_of_a_block.cpp
// reports: this was thread block 0 thread 3 .warp 0 lane 3
// reports: at byte 96 of a freed block of 100 bytes
// reports: allocated by thread block 0 thread 1.*block.cpp:16 in
// reports: freed by thread block 0 thread 2.*block.cpp:18 in
// A lane stores to a block of a heap that another one has freed (guard.A1). The report names the
// three lanes and their lines.
#include <warpheap/warpheap.hpp>

struct store_after_free {
  void operator()(warpheap::heap_ref heap) const {
    using namespace warpheap;
    u32 const lane = simt::lane_id();
    u32* block = nullptr;
    if (lane == 1) block = static_cast<u32*>(heap.malloc(100));
    block = reinterpret_cast<u32*>(simt::shuffle(full_mask, reinterpret_cast<u64>(block), 1));
    if (lane == 2) heap.free(block);
    simt::sync_warp(full_mask);
    if (lane == 3) block[24] = 2;
  }
};

int main() {
  warpheap::heap const heap{warpheap::heap::minimum_bytes};
  warpheap::launch({1, 32}, store_after_free{}, heap.ref());
}
