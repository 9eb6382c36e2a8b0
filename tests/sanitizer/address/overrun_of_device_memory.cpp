// reports: SUMMARY: AddressSanitizer: heap-buffer-overflow .*overrun_of_device_memory.cpp
// A lane stores behind the end of device memory.
#include <warpheap/platform/device_buffer.hpp>

struct overrun {
  void operator()(warpheap::u32* values) const { values[33 + warpheap::simt::lane_id()] = 1; }
};

int main() {
  warpheap::device_buffer<warpheap::u32> values{32};
  warpheap::launch({1, 1}, overrun{}, values.data());
}
