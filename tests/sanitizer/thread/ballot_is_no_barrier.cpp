// reports: SUMMARY: ThreadSanitizer: data race .*ballot_is_no_barrier.cpp
// Lanes exchange values through memory with a ballot between store and load. It meets, but orders no memory.
#include <warpheap/platform/device_buffer.hpp>

struct exchange {
  void operator()(warpheap::u32* slots, warpheap::u32* read) const {
    auto const lane = warpheap::simt::lane_id();
    slots[lane] = lane;
    warpheap::simt::ballot(warpheap::full_mask, true);
    read[lane] = slots[31 - lane];
  }
};

int main() {
  warpheap::device_buffer<warpheap::u32> slots{32}, read{32};
  warpheap::launch({1, 32}, exchange{}, slots.data(), read.data());
}
