// SPDX-License-Identifier: Apache-2.0
// Objects instead of bytes: make() constructs, destroy() runs the destructor. An owner passes an
// object from thread to thread, and the last thread destroys it.
#include <warpheap/container/owner.hpp>
#include <warpheap/platform/device_buffer.hpp>
#include <warpheap/warpheap.hpp>

#include <cstdio>

namespace {

using namespace warpheap::literals;

// A sum of numbers, whose destructor stores it.
class sum {
 public:
  WARPHEAP_DEVICE explicit sum(unsigned* result) : result_{result} {}
  WARPHEAP_DEVICE ~sum() { *result_ = total_; }
  WARPHEAP_DEVICE void add(unsigned number) { total_ += number; }

 private:
  unsigned* result_;
  unsigned total_ = 0;
};

struct begin {
  WARPHEAP_DEVICE void operator()(warpheap::heap_ref heap, warpheap::owner<sum>* sums, unsigned* results) const {
    auto const me = static_cast<unsigned>(warpheap::global_thread_index());
    sums[me] = warpheap::owner<sum>{heap.make<sum>(&results[me])};
    // Not initialised, as by new: numbers have no constructor.
    warpheap::owner<unsigned[]> squares{heap.make_array<unsigned>(me % 8), me % 8};
    for (unsigned i = 0; i < squares.size(); ++i) squares[i] = (i + 1) * (i + 1);
    for (unsigned const square : squares)
      if (sums[me]) sums[me]->add(square);
    squares.reset(heap);
  }
};

// By other threads: thread i finishes the sum of the thread at the other end.
struct end {
  WARPHEAP_DEVICE void operator()(warpheap::heap_ref heap, warpheap::owner<sum>* sums, unsigned count) const {
    auto const me = static_cast<unsigned>(warpheap::global_thread_index());
    if (me < count) sums[count - 1 - me].reset(heap);
  }
};

}  // namespace

int main() {
  warpheap::heap const heap{64_MiB};
  warpheap::device_buffer<warpheap::owner<sum>> const sums{1024};  // zeroed: they own nothing
  warpheap::device_buffer<unsigned> const results{1024};
  warpheap::launch({8, 128}, begin{}, heap.ref(), sums.data(), results.data());
  warpheap::launch({3, 512}, end{}, heap.ref(), sums.data(), 1024u);
  warpheap::synchronize();

  unsigned total = 0;
  for (unsigned const result : results.to_host()) total += result;
  auto const live = heap.statistics().live_blocks;
  std::printf("the sums add up to %u, and %llu blocks are live\n", total, live);
  return total == 128 * (1 + 5 + 14 + 30 + 55 + 91 + 140) && live == 0 ? 0 : 1;
}
