// SPDX-License-Identifier: Apache-2.0
// Whatever a thread did before free() happens before the malloc() that hands the block out again.
// The ownership of a block guards a word beside it, which the owner reads and raises without a
// read-modify-write. An owner that does not see the last owner's word loses a count. With plain
// accesses a race detector sees it too; with relaxed ones the host backend's weak memory show it.
#pragma once

#include "contention.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace conformance {

enum class access { plain, relaxed };

/// Allocates and frees in rounds; raises the word of every block held. Addresses of a pool have
/// different words.
template <access How>
struct raise_guarded_words {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 bytes, u64 rounds, u64* words, u64 count, u64* raised) const {
    u64 mine = 0;
    for (u64 round = 0; round < rounds; ++round) {
      void* const memory = heap.malloc(bytes);
      if (!memory) continue;
      u64& word = words[reinterpret_cast<u64>(memory) / 16 % count];
      if constexpr (How == access::plain) {
        ++word;
      } else {
        // relaxed: the heap alone orders owners; that is the claim.
        u64 const seen = atomic_ref<u64>{word}.load(order::relaxed);
        atomic_ref<u64>{word}.store(seen + 1, order::relaxed);
      }
      ++mine;
      heap.free(memory);
    }
    atomic_ref<u64>{*raised}.fetch_add(mine, order::relaxed);
  }
};

/// Owners that write all of a block, wait, and find it as they left it.
struct own_exclusively {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 bytes, u64 rounds, u64* served, u64* damaged) const {
    for (u64 round = 0; round < rounds; ++round) {
      holding const block{reinterpret_cast<u64>(heap.malloc(bytes)), bytes};
      if (!block.address) continue;
      u64 const tag = global_thread_index() + grid_threads() * round;
      write_pattern(block, tag);
      simt::pause(50);
      if (!holds_pattern(block, tag)) atomic_ref<u64>{*damaged}.fetch_add(1, order::relaxed);
      atomic_ref<u64>{*served}.fetch_add(1, order::relaxed);
      heap.free(block.memory());
    }
  }
};

/// With `spare` blocks free in a full heap, each of them has many owners, one after the other.
template <access How, class Allocator>
verdict counts_every_ownership(scenario const& with, u64 spare) {
  auto bench = harness<Allocator>::cramped(with);
  verdict found;
  u64 const bytes = contended_bytes(bench);
  auto const blocks = bench.fill(bytes);
  found.at_least("blocks of the full heap", blocks.size(), spare);
  if (!found.ok()) return found;
  bench.free({blocks.begin(), blocks.begin() + static_cast<i64>(spare)});
  device_buffer<u64> const words(2 * with.pool_bytes / 16);
  device_buffer<u64> const raised(1);
  u64 const rounds = with.small ? 6 : 32;
  bench.run(raise_guarded_words<How>{}, bench.ref(), bytes, rounds, words.data(), static_cast<u64>(words.size()),
            raised.data());
  u64 sum = 0;
  for (u64 const word : words.to_host()) sum += word;
  found.at_least("blocks served", raised[0], 1u);
  found.equal("ownerships that the next owner saw", sum, raised[0]);
  bench.heap().reset();
  return found;
}

template <class Allocator>
verdict passes_contents_on(scenario const& wide) {
  auto const with = wide.less_contended();
  return counts_every_ownership<access::relaxed, Allocator>(with, with.small ? 1 + with.seed % 4 : with.lanes() / 4);
}

template <class Allocator>
verdict passes_plain_contents_on(scenario const& wide) {
  auto const with = wide.less_contended();
  return counts_every_ownership<access::plain, Allocator>(with, with.lanes() / 4 + 1);
}

template <class Allocator>
verdict gives_each_block_one_owner_at_a_time(scenario const& with) {
  harness<Allocator> bench{with};
  verdict found;
  u64 const rounds = with.small ? 4 : 16;
  device_buffer<u64> const counts(2);
  bench.run(own_exclusively{}, bench.ref(), contended_bytes(bench) / 2, rounds, counts.data(), counts.data() + 1);
  found.equal("blocks served", counts[0], with.lanes() * rounds);
  found.equal("blocks that changed under their owner", counts[1], 0u);
  found.include(bench.empty());
  return found;
}

}}}  // namespace warpheap::WARPHEAP_BACKEND::conformance
