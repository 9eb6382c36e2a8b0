// SPDX-License-Identifier: Apache-2.0
// The purpose of Gelado and Garland's allocator (2019): a kernel whose output size is not known
// beforehand allocates as it goes, with malloc and free alone, instead of one kernel that counts
// and a second one that writes. Here their allocator is behind warpheap::malloc.
#include <warpheap/allocator/throughput.hpp>
#include <warpheap/heap/override_allocator.hpp>
#include <warpheap/warpheap.hpp>

template <>
struct warpheap::override_allocator<> {
  using type = warpheap::throughput_allocator;
};

#include <warpheap/heap/global_heap.hpp>
#include <warpheap/platform/device_buffer.hpp>

#include <cstdio>

namespace {

// Thread n lists the divisors of n, after their count.
struct list_divisors {
  WARPHEAP_DEVICE void operator()(unsigned** lists) const {
    auto const n = static_cast<unsigned>(warpheap::global_thread_index());
    unsigned count = 0;
    for (unsigned i = 1; i <= n; ++i) count += n % i == 0;
    auto* const list = static_cast<unsigned*>(warpheap::malloc((1 + count) * sizeof(unsigned)));
    lists[n] = list;
    if (!list) return;
    list[0] = 0;
    for (unsigned i = 1; i <= n; ++i)
      if (n % i == 0) list[++list[0]] = i;
  }
};

struct add_up_and_free {
  WARPHEAP_DEVICE void operator()(unsigned* const* lists, unsigned* sums) const {
    auto const n = warpheap::global_thread_index();
    unsigned* const list = lists[n];
    for (unsigned i = 1; list && i <= list[0]; ++i) sums[n] += list[i];
    warpheap::free(list);
  }
};

}  // namespace

int main() {
  warpheap::global_heap const heap{64u << 20};
  warpheap::device_buffer<unsigned*> const lists{512};
  warpheap::device_buffer<unsigned> const sums{512};
  warpheap::launch({4, 128}, list_divisors{}, lists.data());
  warpheap::launch({4, 128}, add_up_and_free{}, static_cast<unsigned* const*>(lists.data()), sums.data());
  warpheap::synchronize();
  bool const right = sums[496] == 2 * 496 && sums[509] == 510 && heap.heap().statistics().live_blocks == 0;
  std::printf("%s\n", right ? "right" : "wrong");
  return right ? 0 : 1;
}
