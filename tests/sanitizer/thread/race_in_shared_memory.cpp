// SPDX-License-Identifier: Apache-2.0
// reports: SUMMARY: ThreadSanitizer: data race .*race_in_shared_memory.cpp
// Threads exchange numbers through shared memory, and no barrier lies between.
#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/platform/shared_memory.hpp"

using namespace warpheap;

struct exchange {
  void operator()(u32* sums) const {
    WARPHEAP_SHARED(numbers, u32[64]);
    u32 const thread = simt::thread_index();
    numbers[thread] = thread;
    simt::ballot(full_mask, true);  // orders nothing, and keeps all lanes alive
    atomic_ref<u32>{*sums}.fetch_add(numbers[63 - thread], order::relaxed);
  }
};

int main() {
  device_buffer<u32> sums(1);
  launch({1, 64}, exchange{}, sums.data());
}
