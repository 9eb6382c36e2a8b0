// SPDX-License-Identifier: Apache-2.0
// Kernels that fail half way, again and again, with lanes in every kind of wait: AddressSanitizer
// and ThreadSanitizer must stay silent, and the stacks serve the next launch.
#include <cstdio>

#include "warpheap/platform/device_buffer.hpp"

using namespace warpheap;

struct fail_half_way {
  void operator()(u32* words) const {
    atomic_ref<u32>{words[0]}.fetch_add(1, order::relaxed);
    if (simt::thread_index() == 17) simt::trap("half way");
    if (simt::thread_index() == 18) throw backend_error{"half way"};
    if (simt::lane_id() % 3 == 0) simt::active_mask();
    if (simt::lane_id() % 3 == 1) simt::pause(100);
    if (simt::warp_id() == 0) simt::sync_warp(full_mask);
    simt::sync_block();
  }
};

struct count {
  void operator()(u32* words) const { atomic_ref<u32>{words[1]}.fetch_add(1, order::relaxed); }
};

int main() {
  device_buffer<u32> words(2);
  u32 failures = 0;
  for (u64 seed = 0; seed < 20; ++seed) {
    auto const mode = seed % 2 ? host::execution_mode::parallel : host::execution_mode::deterministic;
    host::scoped_execution const use{{.mode = mode, .seed = seed, .os_threads = 2}};
    try {
      launch({4, 64}, fail_half_way{}, words.data());
    } catch (backend_error const&) {
      ++failures;
    }
    launch({4, 64}, count{}, words.data());
  }
  if (failures == 20 && words[1] == 20 * 256) std::puts("silent and right");
}
