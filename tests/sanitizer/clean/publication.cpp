// SPDX-License-Identifier: Apache-2.0
// Everything that orders memory, used rightly in both modes: ThreadSanitizer must stay silent.
#include <cstdio>

#include "warpheap/platform/device_buffer.hpp"

using namespace warpheap;

struct publish {
  void operator()(u32* data, u32* flag, u32* seen) const {
    // By release and acquire, between thread blocks.
    if (global_thread_index() == 0) {
      data[0] = 42;
      atomic_ref<u32>{*flag}.store(1, order::release);
    }
    while (!atomic_ref<u32>{*flag}.load(order::acquire)) simt::pause(10);
    // By sync_warp, then by sync_block, within one.
    u32* const own = data + 1 + simt::block_index() * simt::block_dim();
    u32 const thread = simt::thread_index(), lane = simt::lane_id();
    own[thread] = data[0] + thread;
    simt::sync_warp(full_mask);
    u32 const neighbour = own[thread - lane + (lane + 1) % warp_lanes];
    simt::sync_block();
    own[thread] = own[thread] + 0 * neighbour;
    simt::sync_block();
    if (thread == 0) {
      for (u32 other = 0; other < simt::block_dim(); ++other)
        atomic_ref<u32>{*seen}.fetch_add(own[other] - other, order::relaxed);
    }
  }
};

struct read_after {
  void operator()(u32 const* data, u32* seen) const { *seen += data[0]; }
};

/// Plain data that two fences hand over.
struct fence_and_pass {
  void operator()(u32* data, u32* flag) const {
    if (simt::block_index() == 0) {
      *data = 7;
      full_fence();
      atomic_ref<u32>{*flag}.store(1, order::relaxed);
    } else {
      while (!atomic_ref<u32>{*flag}.load(order::relaxed)) simt::pause(10);
      full_fence();
      *data += 1;
    }
  }
};

bool run_all() {
  constexpr launch_shape shape{6, 64};
  device_buffer<u32> data(1 + shape.blocks * shape.threads), flags(3);
  launch(shape, publish{}, data.data(), flags.data(), flags.data() + 1);
  launch({1, 1}, read_after{}, data.data(), flags.data() + 1);  // the launch orders the kernels
  stream work;
  launch(work, {1, 1}, read_after{}, data.data(), flags.data() + 1);
  launch(work, {1, 1}, read_after{}, data.data(), flags.data() + 1);
  synchronize(work);
  device_buffer<u32> fenced(2);
  launch({2, 1}, fence_and_pass{}, fenced.data(), fenced.data() + 1);
  return flags[1] == 42 * (shape.blocks * shape.threads + 3) && fenced[0] == 8;
}

int main() {
  for (u64 seed = 0; seed < 4; ++seed) {
    host::scoped_execution const use{{.mode = host::execution_mode::deterministic, .seed = seed}};
    if (!run_all()) return 1;
  }
  host::scoped_execution const use{{.os_threads = 2}};
  if (!run_all()) return 1;
  std::puts("silent and right");
}
