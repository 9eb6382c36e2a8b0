// SPDX-License-Identifier: Apache-2.0
// Three ways to grow a heap: when the program says so, between kernels by what was refused, and
// while a kernel waits for memory.
#include <warpheap/heap/growing_heap.hpp>
#include <warpheap/heap/growth_service.hpp>
#include <warpheap/warpheap.hpp>

#include <cstdio>

#include "warpheap/platform/device_buffer.hpp"

namespace {

using namespace warpheap::literals;

// Calls wait up to ten seconds for memory: the host may be busy.
constexpr warpheap::oom::grow_on_demand_config patient{.deadline_us = 10'000'000};
using patient_heap = warpheap::basic_heap<warpheap::growing_allocator_with<warpheap::oom::grow_on_demand<patient>>>;

constexpr warpheap::launch_shape shape{64, 64};
constexpr int threads = 64 * 64;

/// Kernel: a list of four nodes for each thread; counts the nodes for which there was no memory.
struct build_lists {
  struct node {
    node* next;
    unsigned long long payload[511];
  };

  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, unsigned long long* refused) const {
    node* first = nullptr;
    for (int i = 0; i < 4; ++i) {
      auto* const one = static_cast<node*>(heap.malloc(sizeof(node)));
      if (one) {
        one->next = first;
        first = one;
      } else {
        warpheap::atomic_ref<unsigned long long>{*refused}.fetch_add(1, warpheap::order::relaxed);
      }
    }
  }
};

template <class Heap>
unsigned long long refused_nodes(Heap& heap) {
  warpheap::device_buffer<unsigned long long> const refused(1);
  heap.reset();
  warpheap::launch(shape, build_lists{}, heap.ref(), refused.data());
  warpheap::synchronize();
  return refused[0];
}

void print(char const* how, unsigned long long refused, size_t committed) {
  std::printf("%-22s %5llu of %d nodes refused, %3zu MiB of memory\n", how, refused, 4 * threads, committed >> 20);
}

}  // namespace

int main() {
  warpheap::growth const plan{.initial = 2_MiB, .limit = 256_MiB, .chunk = 2_MiB};

  warpheap::growing_heap told{plan};
  print("as it was made:", refused_nodes(told), told.committed_bytes());
  told.grow(126_MiB);
  auto const after_growth = refused_nodes(told);
  print("after grow():", after_growth, told.committed_bytes());

  warpheap::polled_heap polled{plan};
  auto refused = refused_nodes(polled);
  for (int rounds = 0; refused != 0 && rounds < 10; ++rounds) {
    print("before poll():", refused, polled.committed_bytes());
    polled.poll();
    refused = refused_nodes(polled);
  }
  print("after poll():", refused, polled.committed_bytes());

  patient_heap waiting{plan};
  warpheap::growth_service const service{waiting};
  auto const waited = refused_nodes(waiting);
  print("while kernels wait:", waited, waiting.committed_bytes());

  return after_growth == 0 && refused == 0 && waited == 0 ? 0 : 1;
}
