// SPDX-License-Identifier: Apache-2.0
// reports: SUMMARY: AddressSanitizer: heap-use-after-free .*use_after_free.cpp
// A kernel keeps a pointer to device memory that its owner has given back.
#include <warpheap/platform/device_buffer.hpp>

struct store {
  void operator()(warpheap::u32* value) const { *value = 1; }
};

int main() {
  warpheap::u32* kept = nullptr;
  {
    warpheap::device_buffer<warpheap::u32> value{1};
    kept = value.data();
  }
  warpheap::launch({1, 1}, store{}, kept);
}
