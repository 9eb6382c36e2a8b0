// SPDX-License-Identifier: Apache-2.0
// Many short lives: fibers and their stacks are used again, in parallel and in deterministic mode.
#include <warpheap/platform/device_buffer.hpp>

struct count {
  void operator()(warpheap::u32* total) const {
    warpheap::u32 local[64] = {};
    for (warpheap::u32 i = 0; i < 64; ++i) local[i] = i;
    warpheap::simt::pause(1);
    warpheap::atomic_ref<warpheap::u32>{*total}.fetch_add(local[warpheap::simt::thread_index() % 64] < 64,
                                                          warpheap::order::relaxed);
  }
};

int main() {
  using warpheap::host::execution_mode;
  warpheap::device_buffer<warpheap::u32> total{1};
  for (auto const mode : {execution_mode::parallel, execution_mode::deterministic}) {
    warpheap::host::scoped_execution const run{{.mode = mode, .sm_count = 2, .blocks_per_sm = 2}};
    for (int kernel = 0; kernel < 3; ++kernel) warpheap::launch({16, 64}, count{}, total.data());
  }
  warpheap::synchronize();
  return total[0] == 2 * 3 * 16 * 64 ? 0 : 1;
}
