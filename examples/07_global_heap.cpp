// SPDX-License-Identifier: Apache-2.0
// A heap for the whole process: kernels call warpheap::malloc without a heap parameter, and plain
// malloc stays CUDA's. Several files may do this; each includes the header.
#include <warpheap/heap/global_heap.hpp>
#include <warpheap/platform/device_buffer.hpp>

#include <cstdio>

namespace {

struct node {
  unsigned value;
  node* next;
};

// Each thread lists the divisors of its number, adds them up, and frees them.
struct sum_divisors {
  WARPHEAP_DEVICE void operator()(unsigned* sums, unsigned long long* bytes) const {
    auto const me = static_cast<unsigned>(warpheap::global_thread_index());
    node* list = nullptr;
    for (unsigned divisor = 1; divisor <= me; ++divisor) {
      if (me % divisor != 0) continue;
      auto* const found = static_cast<node*>(warpheap::malloc(sizeof(node)));
      if (!found) return;
      *found = {divisor, list};
      list = found;
    }
    bytes[me] = list ? warpheap::usable_size(list) : 0;
    unsigned sum = 0;
    while (list) {
      node* const next = list->next;
      sum += list->value;
      warpheap::free(list);
      list = next;
    }
    sums[me] = sum;
  }
};

}  // namespace

int main() {
  warpheap::global_heap const heap{16u << 20};  // from here on kernels allocate from it

  warpheap::device_buffer<unsigned> const sums{512};
  warpheap::device_buffer<unsigned long long> const bytes{512};
  warpheap::launch({4, 128}, sum_divisors{}, sums.data(), bytes.data());
  warpheap::synchronize();

  // 6, 28 and 496 are the sums of their proper divisors.
  bool right = heap.heap().statistics().live_blocks == 0 && bytes[1] >= sizeof(node);
  for (unsigned i = 1; i < 512; ++i) {
    bool const perfect = sums[i] == 2 * i;
    if (perfect) std::printf("%u is perfect\n", i);
    right = right && perfect == (i == 6 || i == 28 || i == 496);
  }
  std::printf("%s\n", right ? "right" : "wrong");
  return right ? 0 : 1;
}
