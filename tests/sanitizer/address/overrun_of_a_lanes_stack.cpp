// SPDX-License-Identifier: Apache-2.0
// reports: SUMMARY: AddressSanitizer: stack-buffer-overflow .*overrun_of_a_lanes_stack.cpp
// A lane stores behind the end of an array on its own stack.
#include <warpheap/platform/device_buffer.hpp>

struct overrun {
  void operator()(warpheap::u32* result, warpheap::u32 length) const {
    warpheap::u32 volatile local[8];
    for (warpheap::u32 i = 0; i < length; ++i) local[i] = i;
    *result = local[0];
  }
};

int main() {
  warpheap::device_buffer<warpheap::u32> result{1};
  warpheap::launch({1, 1}, overrun{}, result.data(), 9u);
}
