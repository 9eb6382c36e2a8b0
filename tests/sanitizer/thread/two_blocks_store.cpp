// reports: SUMMARY: ThreadSanitizer: data race .*two_blocks_store.cpp
// Lanes of two thread blocks store to one word, and nothing orders them.
#include <warpheap/platform/device_buffer.hpp>

struct store {
  void operator()(warpheap::u32* word) const { *word = warpheap::simt::block_index(); }
};

int main() {
  warpheap::device_buffer<warpheap::u32> word{1};
  warpheap::launch({2, 1}, store{}, word.data());
}
