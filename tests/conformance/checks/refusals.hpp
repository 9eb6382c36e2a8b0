// SPDX-License-Identifier: Apache-2.0
// What nullptr says: no suitable block stayed free during the whole call. And the call ends,
// whatever other lanes do meanwhile.
#pragma once

#include "contention.hpp"
#include "support/refusals.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace conformance {

/// A heap that is full but for some places for one size, fewer than there are lanes.
template <class Allocator>
struct nearly_full {
  harness<Allocator> bench;
  u64 bytes;
  holdings blocks;  ///< all others
  std::vector<u64> places;

  nearly_full(scenario const& with, u64 most_places) : bench{harness<Allocator>::cramped(with)} {
    bytes = contended_bytes(bench);
    blocks = bench.fill(bytes);
    random_sequence random{with.seed};
    for (u64 i = blocks.size(); i > 1; --i) std::swap(blocks[i - 1], blocks[random.below(static_cast<u32>(i))]);
    u64 const free = std::min<u64>(1 + random.below(static_cast<u32>(most_places)), blocks.size());
    auto const gone = split_off(blocks, free);
    bench.free(gone);
    places.resize(gone.size());
    std::transform(gone.begin(), gone.end(), places.begin(), [](holding const& block) { return block.address; });
  }
};

/// More lanes than blocks take and free them: some are refused, but none while a block stays free.
template <class Allocator>
verdict finds_what_stays_free(scenario const& wide) {
  auto const with = wide.less_contended();
  nearly_full<Allocator> heap{with, with.lanes()};
  verdict found;
  auto const seen = test::refusals_of(heap.bench.ref(), with.shape, heap.places, heap.bytes, 5u, with.seed,
                                      [&](auto... kernel) { heap.bench.run_as(kernel...); });
  found.at_least("calls served", seen.served, 1u);
  found.equal("refusals while a block stayed free", seen.unfounded, 0u);
  found.equal("blocks free after that", served(heap.bench.ask(same(with.lanes(), heap.bytes))).size(),
              std::min<u64>(heap.places.size(), with.lanes()));
  return found;
}

/// The first lane of each thread block asks for `wanted` bytes a few times. All others take and
/// free blocks until those are done: a search that began again with each free would not end.
struct ask_among_others {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 bytes, u64 wanted, u64 calls, u64* pending) const {
    if (simt::thread_index() != 0) {
      // relaxed: a flag.
      for (; atomic_ref<u64>{*pending}.load(order::relaxed) != 0; simt::pause(1)) heap.free(heap.malloc(bytes));
      return;
    }
    for (u64 call = 0; call < calls; ++call) heap.free(heap.malloc(wanted));
    atomic_ref<u64>{*pending}.fetch_sub(1, order::relaxed);
  }
};

/// Calls end while other lanes churn on a full heap without end, also calls for more than most free
/// places have room for. Where that does not hold, the kernel does not end.
template <class Allocator>
verdict answers_while_others_churn(scenario const& with) {
  auto const here = with.resident();
  nearly_full<Allocator> heap{here, 3};
  verdict found;
  u64 const free = heap.places.size(), calls = with.small ? 2 : 20;
  device_buffer<u64> const pending{std::vector<u64>{here.shape.blocks}};
  heap.bench.run(ask_among_others{}, heap.bench.ref(), heap.bytes, heap.bench.capped(2 * heap.bytes), calls,
                 pending.data());
  found.equal("lanes that wait for an answer", pending[0], 0u);
  found.equal("blocks free after that", heap.bench.fill(heap.bytes).size(), free);
  return found;
}

}}}  // namespace warpheap::WARPHEAP_BACKEND::conformance
