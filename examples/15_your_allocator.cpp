// SPDX-License-Identifier: Apache-2.0
// A custom allocator (15_your_allocator/unit_bitmap.hpp) in a heap like any other: used by a
// kernel, queried by the host, and timed beside the default.
#include <warpheap/platform/device_buffer.hpp>

#include <chrono>
#include <cstdio>

#include "15_your_allocator/unit_bitmap.hpp"

namespace {

using namespace warpheap::literals;

/// A heap of our own policy with the simplest other four.
using unit_bitmap_heap = warpheap::basic_heap<warpheap::plain_allocator<example::unit_bitmap>>;

struct allocate {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap, void** blocks, warpheap::size_t bytes) const {
    blocks[warpheap::global_thread_index()] = heap.malloc(bytes);
  }
};

struct release {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap, void** blocks) const {
    heap.free(blocks[warpheap::global_thread_index()]);
  }
};

/// Each thread allocates a block and frees it, three times; prints the last round's time. Returns
/// whether each thread got a block, and all were freed.
template <class Heap>
bool time(Heap const& heap, unsigned threads, warpheap::size_t bytes) {
  warpheap::device_buffer<void*> const blocks{threads};
  bool is_right = true;
  double seconds[2] = {};
  for (int round = 0; round < 3; ++round) {
    auto const start = std::chrono::steady_clock::now();
    warpheap::launch({threads / 256, 256}, allocate{}, heap.ref(), blocks.data(), bytes);
    warpheap::synchronize();
    auto const between = std::chrono::steady_clock::now();
    is_right = is_right && heap.statistics().live_blocks == threads && heap.check_invariants().empty();
    auto const again = std::chrono::steady_clock::now();
    warpheap::launch({threads / 256, 256}, release{}, heap.ref(), blocks.data());
    warpheap::synchronize();
    seconds[0] = std::chrono::duration<double>{between - start}.count();
    seconds[1] = std::chrono::duration<double>{std::chrono::steady_clock::now() - again}.count();
    is_right = is_right && heap.statistics().live_blocks == 0;
  }
  std::printf("%s: %u x %zu B, malloc %.0f us, free %.0f us\n", Heap::allocator_type::creation_type::name, threads,
              bytes, 1e6 * seconds[0], 1e6 * seconds[1]);
  return is_right;
}

}  // namespace

int main() {
#if defined(__CUDACC__)
  constexpr unsigned threads = 1 << 20;
#else
  constexpr unsigned threads = 1 << 12;
#endif
  unit_bitmap_heap const ours{256_MiB};
  warpheap::heap const theirs{256_MiB};
  bool is_right = true;
  for (warpheap::size_t const bytes : {64u, 200u})
    is_right = time(ours, threads, bytes) && time(theirs, threads, bytes) && is_right;
  std::printf("%s\n", is_right ? "right" : "wrong");
  return is_right ? 0 : 1;
}
