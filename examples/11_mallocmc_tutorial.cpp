// SPDX-License-Identifier: Apache-2.0
// The tutorial of mallocMC's thesis (Eckert 2014, appendix A) in our spelling: configure the
// policies of ScatterAlloc, compose them, make the result the process's allocator, and ask host and
// kernel how many slots there are. With override.hpp instead of global_heap.hpp, the kernel's own
// malloc and free use it.
#include <warpheap/allocator/scatter.hpp>
#include <warpheap/heap/override_allocator.hpp>
#include <warpheap/warpheap.hpp>

// listing A.2
constexpr warpheap::creation::scatter_config scatter_config{.page_bytes = 4096, .reset_freed_pages = false};
constexpr warpheap::distribution::warp_coalesce_config distribution_config{.page_bytes = scatter_config.page_bytes};

// listings A.3 and A.4
template <>
struct warpheap::override_allocator<> {
  using type =
      warpheap::allocator<warpheap::creation::scatter<scatter_config>,
                          warpheap::distribution::basic_warp_coalesce<distribution_config>, warpheap::oom::return_null,
                          warpheap::reserve_pool::device_memory, warpheap::alignment::shrink<16>>;
};

#include <warpheap/heap/global_heap.hpp>
#include <warpheap/platform/device_buffer.hpp>

#include <cstdio>

namespace {

// listing A.6
struct example_kernel {
  WARPHEAP_DEVICE void operator()(unsigned long long* slots) const {
    auto* const p = static_cast<int*>(warpheap::malloc(128));
    if (p) *p = 7;
    slots[warpheap::global_thread_index()] = p ? warpheap::available_slots(128) : 0;
    warpheap::free(p);
  }
};

}  // namespace

// listing A.5
int main() {
  warpheap::global_heap const heap{64u << 20};
  unsigned long long const at_first = heap.heap().available_slots(128);
  warpheap::device_buffer<unsigned long long> const slots{128};
  warpheap::launch({2, 64}, example_kernel{}, slots.data());
  warpheap::synchronize();
  std::printf("%llu slots of 128 bytes, %llu while thread 0 had one\n", at_first, slots[0]);

  bool right = heap.heap().statistics().live_blocks == 0;
  for (unsigned long long const seen : slots.to_host()) right = right && seen > 0 && seen < at_first;
  std::printf("%s\n", right ? "right" : "wrong");
  return right ? 0 : 1;
}
