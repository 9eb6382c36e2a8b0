// SPDX-License-Identifier: Apache-2.0
// How often does each number occur? How many different ones there are is not known beforehand: the
// map begins empty and grows while 65,536 threads count. Then it is compacted.
#include <warpheap/container/hash_map.hpp>
#include <warpheap/platform/device_buffer.hpp>
#include <warpheap/warpheap.hpp>

#include <cstdio>

using counts = warpheap::hash_map<unsigned, unsigned>;

// Thread i counts the sum of the squares of i's decimal digits.
struct count_numbers {
  WARPHEAP_DEVICE void operator()(warpheap::heap_ref heap, counts* map) const {
    auto const one_more = [](unsigned count) { return count + 1; };
    unsigned sum = 0;
    for (auto i = static_cast<unsigned>(warpheap::global_thread_index()); i != 0; i /= 10) sum += i % 10 * (i % 10);
    map->insert_or_update(heap, sum, 1, one_more);
  }
};

struct look_up {
  WARPHEAP_DEVICE void operator()(counts const* map, unsigned number, unsigned* count) const {
    if (!map->find(number, *count)) *count = 0;
  }
};

int main() {
  warpheap::heap const heap{16u << 20};
  warpheap::device_buffer<counts> const map{1};
  warpheap::device_buffer<unsigned> const found{2};
  warpheap::launch({256, 256}, count_numbers{}, heap.ref(), map.data());
  compact(heap.ref(), map.data());
  warpheap::launch({1, 1}, look_up{}, map.data(), 85u, found.data());
  warpheap::launch({1, 1}, look_up{}, map.data(), 100'000u, found.data() + 1);
  auto const figures = inspect(map.data());
  std::printf("%llu different sums in %llu slots; 85 occurs %u times\n", figures.entries, figures.capacity, found[0]);
  destroy(heap.ref(), map.data());
  warpheap::synchronize();
  bool const right = found[0] > 1 && found[1] == 0 && figures.levels == 1 && heap.statistics().live_blocks == 0;
  std::printf("%s\n", right ? "right" : "wrong");
  return right ? 0 : 1;
}
