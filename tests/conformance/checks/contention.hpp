// SPDX-License-Identifier: Apache-2.0
// A refusal is the truth also while other lanes ask and free: as many calls are served as there are
// blocks, and a lane that waits for a block which another lane is to free gets it. Lanes wait only
// where every partner is resident: the heap promises no more.
#pragma once

#include "recovery.hpp"
#include "warpheap/platform/backoff.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace conformance {

/// A size of which the full heap has at least two blocks a lane.
template <class Allocator>
u64 contended_bytes(harness<Allocator> const& bench) {
  u64 bytes = bench.capped(4096);
  while (bytes > 16 && bench.room_bytes() / bytes < 4 * bench.lanes()) bytes /= 2;
  return bytes;
}

/// Asks until it is served.
template <class Heap>
WARPHEAP_DEVICE void* wait_for_memory(Heap heap, u64 bytes) {
  backoff wait;
  void* memory = heap.malloc(bytes);
  for (; !memory; memory = heap.malloc(bytes)) wait.while_working();
  return memory;
}

/// On a full heap, even threads free their entry after a while and odd ones wait until they are
/// served.
struct hand_over {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, holding* list, u64, u64 seed) const {
    u64 const i = global_thread_index();
    if (i % 2 == 0) {
      for (u64 pauses = mix(seed + i) % 8; pauses; --pauses) simt::pause(100);
      heap.free(list[i].memory());
      list[i].address = 0;
    } else {
      list[i].address = reinterpret_cast<u64>(wait_for_memory(heap, list[i].bytes));
    }
  }
};

/// Every thread frees its part of the full heap, then waits for `wanted` bytes.
struct trade {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, holding const* list, u64 count, holding* got, u64 wanted) const {
    for (u64 i = global_thread_index(); i < count; i += grid_threads()) heap.free(list[i].memory());
    got[global_thread_index()] = {reinterpret_cast<u64>(wait_for_memory(heap, wanted)), wanted};
  }
};

/// Every thread asks for one block in every round, and frees it before the next; `refused` counts
/// the refusals.
struct ask_in_rounds {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 bytes, u64 rounds, u64* refused) const {
    for (u64 round = 0; round < rounds; ++round) {
      void* const memory = heap.malloc(bytes);
      if (!memory) atomic_ref<u64>{*refused}.fetch_add(1, order::relaxed);
      heap.free(memory);
    }
  }
};

/// N lanes and N-1, N or N+1 free blocks: the smaller number is served.
template <class Allocator>
verdict serves_exactly_what_is_there(scenario const& with) {
  auto bench = harness<Allocator>::cramped(with);
  verdict found;
  u64 const bytes = contended_bytes(bench);
  auto blocks = bench.fill(bytes);
  found.at_least("blocks of the full heap", blocks.size(), with.lanes() + 1);
  for (u64 const free : {with.lanes() - 1, with.lanes(), with.lanes() + 1}) {
    if (!found.ok()) return found;
    bench.free(split_off(blocks, free));
    auto const back = served(bench.ask(same(with.lanes(), bytes)));
    found.equal("lanes served at once", back.size(), std::min(free, with.lanes()));
    bench.free(back);
    auto const rest = bench.fill(bytes);
    found.equal("blocks free after that", rest.size(), free);
    blocks.insert(blocks.end(), rest.begin(), rest.end());
  }
  bench.free(blocks);
  found.include(bench.empty());
  return found;
}

/// With one free block per lane, and every lane holding at most one, no lane is ever refused.
template <class Allocator>
verdict never_refuses_what_nobody_holds(scenario const& wide) {
  auto const with = wide.less_contended();
  auto bench = harness<Allocator>::cramped(with);
  verdict found;
  u64 const bytes = contended_bytes(bench);
  auto blocks = bench.fill(bytes);
  found.at_least("blocks of the full heap", blocks.size(), with.lanes());
  if (!found.ok()) return found;
  bench.free(split_off(blocks, with.lanes()));
  device_buffer<u64> const refused(1);
  bench.run(ask_in_rounds{}, bench.ref(), bytes, with.small ? u64{4} : u64{16}, refused.data());
  found.equal("refusals though a block a lane was free", refused[0], 0u);
  found.include(accounts_for(bench, blocks));
  return found;
}

template <class Allocator>
verdict serves_who_waits_for_a_free(scenario const& wide) {
  auto const with = wide.less_contended();
  auto bench = harness<Allocator>::cramped(with);
  verdict found;
  auto list = bench.fill(contended_bytes(bench));
  found.at_least("blocks of the full heap", list.size(), with.lanes());
  if (!found.ok()) return found;
  auto const hands = split_off(list, with.lanes());
  // Even threads take a block each to free. The blocks of odd threads stay live with the rest, so
  // only those frees can serve.
  auto entries = hands;
  for (size_t i = 1; i < hands.size(); i += 2) {
    entries[i].address = 0;
    list.push_back(hands[i]);
  }
  auto const handed = served(bench.transform(hand_over{}, entries, with.seed));
  found.equal("waiters served", handed.size(), with.lanes() / 2);
  list.insert(list.end(), handed.begin(), handed.end());
  found.include(accounts_for(bench, list));
  return found;
}

/// In a grid that is resident as a whole, frees of one size serve lanes that wait for another size.
template <class Allocator>
verdict serves_who_waits_for_another_size(scenario const& with) {
  auto const here = with.resident();
  constexpr u64 pairs[][2] = {{64, 4096}, {4096, 64}, {256, 9000}, {30'000, 1000}};
  verdict found;
  for (u64 const pair : sweep(with, {0, 1, 2, 3})) {
    auto bench = harness<Allocator>::cramped(here);
    auto const list = bench.fill(bench.capped(pairs[pair][0]));
    u64 const wanted = bench.capped(std::min(pairs[pair][1], bench.room_bytes() / 4 / here.lanes()));
    device_buffer<holding> const got(here.lanes());
    bench.transform(trade{}, list, got.data(), wanted);
    auto const blocks = got.to_host();
    found.equal("waiters served", served(blocks).size(), here.lanes());
    found.include(accounts_for(bench, blocks));
  }
  return found;
}

}}}  // namespace warpheap::WARPHEAP_BACKEND::conformance
