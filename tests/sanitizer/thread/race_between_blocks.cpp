// SPDX-License-Identifier: Apache-2.0
// reports: SUMMARY: ThreadSanitizer: data race .*race_between_blocks.cpp
// A thread block reads what another wrote before a relaxed store. ThreadSanitizer must report it,
// in parallel mode.
#include "warpheap/platform/device_buffer.hpp"

using namespace warpheap;

struct relaxed_publication {
  void operator()(u32* data, u32* flag) const {
    if (simt::block_index() == 0) {
      while (!atomic_ref<u32>{flag[1]}.load(order::relaxed))
        simt::pause(10);  // both live: they have stacks of their own
      *data = 42;
      atomic_ref<u32>{*flag}.store(1, order::relaxed);
    } else {
      atomic_ref<u32>{flag[1]}.store(1, order::relaxed);
      while (!atomic_ref<u32>{*flag}.load(order::relaxed)) simt::pause(10);
      data[1] = *data;
    }
  }
};

int main() {
  host::scoped_execution const use{{.os_threads = 2}};
  device_buffer<u32> words(4);
  launch({2, 1}, relaxed_publication{}, words.data(), words.data() + 2);
}
