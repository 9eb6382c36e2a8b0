// SPDX-License-Identifier: Apache-2.0
// reports: SUMMARY: AddressSanitizer: use-after-poison .*use_after_free_of_a_block.cpp
// A lane stores to a block of a heap that it has freed (guard.A1).
#include <warpheap/warpheap.hpp>

struct store_after_free {
  void operator()(warpheap::heap_ref heap) const {
    auto* const block = static_cast<warpheap::u32*>(heap.malloc(100));
    block[24] = 1;
    heap.free(block);
    block[24] = 2;
  }
};

int main() {
  warpheap::heap const heap{warpheap::heap::minimum_bytes};
  warpheap::launch({1, 1}, store_after_free{}, heap.ref());
}
