// SPDX-License-Identifier: Apache-2.0
// reports: the older block was written
// reports: SUMMARY: AddressSanitizer: use-after-poison .*use_of_a_block_after_restore.cpp
// A heap is restored, and a lane stores to a block that was allocated after the image was made. The
// older block may be written (guard.A1, guard.A2).
#include <warpheap/heap/checkpoint.hpp>
#include <warpheap/platform/device_buffer.hpp>
#include <warpheap/warpheap.hpp>

#include <cstdio>

using namespace warpheap;

struct take {
  void operator()(heap_ref heap, u32** block) const { *block = static_cast<u32*>(heap.malloc(100)); }
};

struct store {
  void operator()(u32* block) const { block[24] = 2; }
};

int main() {
  heap heap{warpheap::heap::minimum_bytes};
  device_buffer<u32*> const blocks(2);
  launch({1, 1}, take{}, heap.ref(), blocks.data());
  auto const image = save(heap);
  launch({1, 1}, take{}, heap.ref(), blocks.data() + 1);
  synchronize();
  restore(heap, image);
  launch({1, 1}, store{}, blocks[0]);
  synchronize();
  std::fputs("the older block was written\n", stderr);
  launch({1, 1}, store{}, blocks[1]);
}
