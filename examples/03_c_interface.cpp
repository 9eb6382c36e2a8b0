// SPDX-License-Identifier: Apache-2.0
// A heap for code that is not C++: a number identifies the heap, and functions with C names work on
// it. A JIT compiler or another language declares them, and links with a module compiled from this
// header.
#include <warpheap/heap/c_interface.hpp>
#include <warpheap/platform/device_buffer.hpp>
#include <warpheap/warpheap.hpp>

#include <cstdio>

namespace {

using namespace warpheap::literals;

// An example of such code: an array that grows as numbers are added.
struct collect {
  WARPHEAP_DEVICE void operator()(unsigned long long heap, unsigned* results) const {
    auto const me = static_cast<unsigned>(warpheap::global_thread_index());
    unsigned room = 4, count = 0;
    auto* numbers = static_cast<unsigned*>(warpheap_malloc(heap, room * sizeof(unsigned)));
    while (numbers && count < 100) {
      if (count == room) {
        auto* const moved = static_cast<unsigned*>(warpheap_realloc(heap, numbers, 2 * room * sizeof(unsigned)));
        if (!moved) break;  // the old array is still there
        numbers = moved;
        room *= 2;
      }
      numbers[count++] = me;
    }
    unsigned sum = 0;
    for (unsigned i = 0; i < count; ++i) sum += numbers[i];
    warpheap_free(heap, numbers);
    results[me] = sum;
  }
};

}  // namespace

int main() {
  warpheap::heap const heap{16_MiB};
  warpheap::device_buffer<unsigned> const results{256};
  warpheap::launch({2, 128}, collect{}, heap.handle(), results.data());
  warpheap::synchronize();
  bool right = heap.statistics().live_blocks == 0;
  for (unsigned i = 0; i < 256; ++i) right = right && results[i] == 100 * i;
  std::printf("256 arrays grew to 100 numbers: %s\n", right ? "right" : "wrong");
  return right ? 0 : 1;
}
