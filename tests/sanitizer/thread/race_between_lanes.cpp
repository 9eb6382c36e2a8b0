// SPDX-License-Identifier: Apache-2.0
// reports: SUMMARY: ThreadSanitizer: data race .*race_between_lanes.cpp
// Two lanes of one warp store to one plain word. ThreadSanitizer must report it, although both run
// on one OS thread.
#include "warpheap/platform/device_buffer.hpp"

using namespace warpheap;

struct both_store {
  void operator()(u32* word) const {
    simt::ballot(3, true);  // orders no memory
    *word = simt::lane_id();
  }
};

int main() {
  host::scoped_execution const use{{.mode = host::execution_mode::deterministic}};
  device_buffer<u32> word(1);
  launch({1, 2}, both_store{}, word.data());
}
