// SPDX-License-Identifier: Apache-2.0
// Threads exchange numbers through shared memory with a barrier between them; many thread blocks
// have one place after the other, and a kernel fails in between.
#include "warpheap/platform/shared_memory.hpp"

#include <cstdio>

#include "warpheap/platform/device_buffer.hpp"

using namespace warpheap;

struct exchange {
  void operator()(u32* sums, bool fails) const {
    WARPHEAP_SHARED(numbers, u32[64]);
    auto const others = dynamic_shared<u32>();
    u32 const thread = simt::thread_index();
    numbers[thread] = others[thread] = thread;
    if (fails && global_thread_index() == 300) simt::trap("as it was told");
    simt::sync_block();
    atomic_ref<u32>{*sums}.fetch_add(numbers[63 - thread] + others[(thread + 1) % 64], order::relaxed);
  }
};

int main() {
  for (bool const fails : {false, true, false}) {
    device_buffer<u32> sums(1);
    try {
      launch({.blocks = 40, .threads = 64, .shared_bytes = 256}, exchange{}, sums.data(), fails);
      if (sums[0] != 40 * 64 * 63) return 1;
    } catch (host::trap_error const&) {
      std::puts("a kernel failed");
    }
  }
}
