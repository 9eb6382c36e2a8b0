// SPDX-License-Identifier: Apache-2.0
// Numbers by their smallest prime factor: all threads insert into one multimap, whose lists grow as
// factors are found, and then each thread walks the list of one key.
#include <warpheap/container/hash_multimap.hpp>
#include <warpheap/platform/device_buffer.hpp>
#include <warpheap/warpheap.hpp>

#include <cstdio>

using numbers = warpheap::hash_multimap<unsigned, unsigned>;
constexpr unsigned most = 4096;

struct insert_by_factor {
  WARPHEAP_DEVICE void operator()(warpheap::heap_ref heap, numbers* by_factor, unsigned* refused) const {
    auto const n = static_cast<unsigned>(warpheap::global_thread_index());
    if (n < 2) return;
    unsigned factor = 2;
    while (n % factor != 0) ++factor;
    if (!by_factor->insert(heap, factor, n)) *refused = 1;
  }
};

struct sum_up {
  WARPHEAP_DEVICE void operator()(numbers const* by_factor, unsigned* counts, unsigned* sums) const {
    auto const factor = static_cast<unsigned>(warpheap::global_thread_index());
    counts[factor] = static_cast<unsigned>(by_factor->for_each(factor, [&](unsigned n) { sums[factor] += n; }));
  }
};

int main() {
  warpheap::heap const heap{16u << 20};
  warpheap::device_buffer<numbers> const by_factor{1};
  warpheap::device_buffer<unsigned> const refused{1}, counts{most}, sums{most};
  warpheap::launch({most / 128, 128}, insert_by_factor{}, heap.ref(), by_factor.data(), refused.data());
  warpheap::launch({most / 128, 128}, sum_up{}, static_cast<numbers const*>(by_factor.data()), counts.data(),
                   sums.data());
  auto const keys = inspect(by_factor.data()).entries;
  destroy(heap.ref(), by_factor.data());
  warpheap::synchronize();
  std::printf("%llu primes below %u; %u numbers begin with 3\n", keys, most, counts[3]);
  // Half of all numbers, and every third of the rest: 3, 9, 15, ...
  bool const right = refused[0] == 0 && keys == 564 && counts[2] == 2047 && counts[3] == 683 && counts[4] == 0 &&
                     sums[4093] == 4093 && heap.statistics().live_blocks == 0;
  std::printf("%s\n", right ? "right" : "wrong");
  return right ? 0 : 1;
}
