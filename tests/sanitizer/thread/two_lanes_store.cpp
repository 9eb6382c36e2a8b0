// reports: SUMMARY: ThreadSanitizer: data race .*two_lanes_store.cpp
// Two lanes of one warp store to one word, and nothing orders them.
#include <warpheap/platform/device_buffer.hpp>

struct store {
  void operator()(warpheap::u32* word) const { *word = warpheap::simt::lane_id(); }
};

int main() {
  warpheap::device_buffer<warpheap::u32> word{1};
  warpheap::launch({1, 2}, store{}, word.data());
}
