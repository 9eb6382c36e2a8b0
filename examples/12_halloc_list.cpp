// SPDX-License-Identifier: Apache-2.0
// Halloc's own interface (Adinetz and Pleiter 2014): the list from their slides, with its names. A
// program that was written for their library changes only its include.
#include <warpheap/heap/halloc_interface.hpp>
#include <warpheap/platform/device_buffer.hpp>

#include <cstdio>

namespace {

struct list_t {
  unsigned value;
  list_t* next;
};

// Each thread makes a list of 1 to 10, adds it up, and frees it.
struct add_up {
  WARPHEAP_DEVICE void operator()(unsigned* sums) const {
    list_t* list = nullptr;
    for (unsigned i = 1; i <= 10; ++i) {
      auto* const p = static_cast<list_t*>(hamalloc(sizeof(list_t)));
      if (!p) break;
      *p = {i, list};
      list = p;
    }
    unsigned sum = 0;
    while (list) {
      list_t* const p = list;
      sum += p->value;
      list = p->next;
      hafree(p);
    }
    sums[warpheap::global_thread_index()] = sum;
  }
};

}  // namespace

int main() {
  ha_init(64 * 1024 * 1024);
  warpheap::device_buffer<unsigned> const sums{256};
  warpheap::launch({4, 64}, add_up{}, sums.data());
  warpheap::synchronize();
  bool right = true;
  for (unsigned const sum : sums.to_host()) right = right && sum == 55;
  ha_shutdown();
  std::printf("%s\n", right ? "right" : "wrong");
  return right ? 0 : 1;
}
