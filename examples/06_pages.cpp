// SPDX-License-Identifier: Apache-2.0
// Lists that grow by pages: every thread collects the divisors of its numbers in a chain of pages
// of one size. It takes another page when the last is full, and finally frees them all. Pages are
// found by random walks: no thread waits for another, and the number of pages need not be known
// beforehand.
#include <warpheap/allocator/random_walk.hpp>
#include <warpheap/warpheap.hpp>

#include <cstdio>

#include "warpheap/platform/device_buffer.hpp"

namespace {

using namespace warpheap::literals;

// Lanes of a warp that share the pages that they find.
constexpr warpheap::creation::random_walk_config small_pages{.kind = warpheap::creation::walk_kind::collaborative,
                                                             .page_bytes = 256};
using page_heap = warpheap::basic_heap<warpheap::plain_allocator<warpheap::creation::random_walk<small_pages>>>;
using page_ref = warpheap::plain_allocator<warpheap::creation::random_walk<small_pages>>;

struct page {
  page* before;
  unsigned used;
  unsigned numbers[61];
};
static_assert(sizeof(page) <= 256);

struct collect_divisors {
  // `sums` gets the sum of the divisors of this thread's numbers, read back from the chain; 0 if
  // there was no page.
  WARPHEAP_DEVICE void operator()(page_ref heap, unsigned numbers, unsigned long long* sums) const {
    auto const first = static_cast<unsigned>(warpheap::global_thread_index()) * numbers + 1;
    page* last = nullptr;
    bool complete = true;
    for (unsigned number = first; number < first + numbers && complete; ++number)
      for (unsigned divisor = 1; divisor <= number && complete; ++divisor)
        if (number % divisor == 0) complete = append(heap, last, divisor);
    unsigned long long sum = 0;
    while (last) {
      for (unsigned i = 0; i < last->used; ++i) sum += last->numbers[i];
      page* const before = last->before;
      heap.creation().free_page(last);
      last = before;
    }
    sums[warpheap::global_thread_index()] = complete ? sum : 0;
  }

 private:
  WARPHEAP_DEVICE static bool append(page_ref heap, page*& last, unsigned number) {
    if (!last || last->used == 61) {
      auto* const next = static_cast<page*>(heap.creation().get_page());
      if (!next) return false;
      next->before = last;
      next->used = 0;
      last = next;
    }
    last->numbers[last->used++] = number;
    return true;
  }
};

}  // namespace

int main() {
  constexpr unsigned threads = 128, numbers = 16;
  page_heap heap{1_MiB};
  warpheap::device_buffer<unsigned long long> const sums{threads};
  warpheap::launch({2, threads / 2}, collect_divisors{}, heap.ref(), numbers, sums.data());
  warpheap::synchronize();

  unsigned long long total = 0, expected = 0;
  for (unsigned long long const sum : sums.to_host()) total += sum;
  for (unsigned divisor = 1; divisor <= threads * numbers; ++divisor)
    expected += static_cast<unsigned long long>(threads * numbers / divisor) * divisor;
  bool const right = total == expected && heap.statistics().live_blocks == 0 && heap.check_invariants().empty();
  std::printf("the divisors of 1 to %u add up to %llu: %s\n", threads * numbers, total, right ? "right" : "wrong");
  return right ? 0 : 1;
}
