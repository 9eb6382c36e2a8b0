// SPDX-License-Identifier: Apache-2.0
// reports: SUMMARY: AddressSanitizer: use-after-poison .*overrun_of_a_block.cpp
// reports: 1 byte behind a block of 20 bytes
// reports: allocated by thread block 0 thread 0
// guard.A2: a lane stores one byte behind the 20 that it asked for, within the 32 that the heap
// gave it.
#include <warpheap/warpheap.hpp>

struct store_behind {
  void operator()(warpheap::heap_ref heap) const {
    auto* const block = static_cast<warpheap::u8*>(heap.malloc(20));
    block[19] = 1;
    block[warpheap::simt::grid_dim() + 19] = 2;
  }
};

int main() {
  warpheap::heap const heap{warpheap::heap::minimum_bytes};
  warpheap::launch({1, 1}, store_behind{}, heap.ref());
}
