// Lanes exchange values through memory: within a warp across sync_warp, within a thread block across sync_block, and
// between two kernels.
#include <warpheap/platform/device_buffer.hpp>

struct exchange {
  void operator()(warpheap::u32* slots, warpheap::u32* wrong) const {
    auto const thread = warpheap::simt::thread_index();
    auto const add_if = [&](bool differs) {
      if (differs) warpheap::atomic_ref<warpheap::u32>{*wrong}.fetch_add(1, warpheap::order::relaxed);
    };
    slots[thread] = thread;
    warpheap::simt::sync_warp(warpheap::full_mask);
    add_if(slots[thread ^ 1] != (thread ^ 1));
    warpheap::simt::sync_block();
    add_if(slots[127 - thread] != 127 - thread);
    warpheap::simt::sync_block();
    slots[(thread + 64) % 128] = 0;
  }
};

int main() {
  warpheap::device_buffer<warpheap::u32> slots{128}, wrong{1};
  for (int kernel = 0; kernel < 4; ++kernel) warpheap::launch({1, 128}, exchange{}, slots.data(), wrong.data());
  warpheap::synchronize();
  return wrong[0] == 0 ? 0 : 1;
}
