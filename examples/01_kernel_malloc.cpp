// SPDX-License-Identifier: Apache-2.0
// One kernel allocates memory and another frees it: every thread builds a linked list, and a second
// kernel, with other threads, adds the lists up and frees them.
#include <warpheap/platform/device_buffer.hpp>
#include <warpheap/warpheap.hpp>

#include <cstdio>

namespace {

using namespace warpheap::literals;

struct node {
  unsigned value;
  node* next;
};

// Thread i makes a list of the numbers from 1 to i % 8.
struct build_lists {
  WARPHEAP_DEVICE void operator()(warpheap::heap_ref heap, node** lists) const {
    auto const me = static_cast<unsigned>(warpheap::global_thread_index());
    node* list = nullptr;
    for (unsigned value = 1; value <= me % 8; ++value) {
      auto* const made = static_cast<node*>(heap.malloc(sizeof(node)));
      if (!made) break;  // out of memory: the list is shorter, but intact
      *made = {value, list};
      list = made;
    }
    lists[me] = list;
  }
};

struct sum_and_free_lists {
  WARPHEAP_DEVICE void operator()(warpheap::heap_ref heap, node** lists, unsigned* sums) const {
    auto const me = warpheap::global_thread_index();
    for (node* list = lists[me]; list;) {
      node* const next = list->next;  // read before the free: after it the node belongs to the heap
      sums[me] += list->value;
      heap.free(list);
      list = next;
    }
  }
};

}  // namespace

int main() {
  // owns the pool; kernels get a reference of 16 bytes, by value
  warpheap::heap const heap{64_MiB};
  constexpr warpheap::launch_shape shape{16, 128};
  warpheap::device_buffer<node*> const lists{16 * 128};
  warpheap::device_buffer<unsigned> const sums{16 * 128};

  warpheap::launch(shape, build_lists{}, heap.ref(), lists.data());
  std::printf("%llu nodes are live\n", heap.statistics().live_blocks);
  warpheap::launch(shape, sum_and_free_lists{}, heap.ref(), lists.data(), sums.data());
  warpheap::synchronize();

  unsigned total = 0;
  for (unsigned const sum : sums.to_host()) total += sum;
  auto const live = heap.statistics().live_blocks;
  std::printf("they add up to %u, and %llu are live now\n", total, live);
  return total == 256 * (1 + 3 + 6 + 10 + 15 + 21 + 28) && live == 0 ? 0 : 1;
}
