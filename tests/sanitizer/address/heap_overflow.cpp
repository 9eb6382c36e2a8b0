// SPDX-License-Identifier: Apache-2.0
// reports: SUMMARY: AddressSanitizer: heap-buffer-overflow .*heap_overflow.cpp
// reports: warpheap: this was thread block 0 thread
// A lane stores behind its buffer. AddressSanitizer must report a heap-buffer-overflow, and the
// lane stands behind it.
#include "warpheap/platform/device_buffer.hpp"

using namespace warpheap;

struct store_behind {
  void operator()(u32* words, u32 size) const {
    simt::sync_block();
    words[size + 1 + simt::thread_index()] = 1;
  }
};

int main() {
  device_buffer<u32> words(64);
  launch({1, 64}, store_behind{}, words.data(), 64u);
}
