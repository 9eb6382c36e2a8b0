// SPDX-License-Identifier: Apache-2.0
// Memory that was freed can be allocated again: all of it, for every size, any number of times.
#pragma once

#include "blocks.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace conformance {

/// A full heap's blocks are apart and whole; freed, the heap is empty and takes as many again.
template <class Allocator>
verdict fills_again(scenario const& with) {
  verdict found;
  for (u64 const bytes : sweep_served<Allocator>(with, {64, 256, 1000, 1024, 3000, 4096, 20000, 70000})) {
    auto bench = harness<Allocator>::cramped(with);
    bench.commit_all_memory();
    auto const first = bench.fill(bytes);
    found.at_least("blocks of the full heap", first.size(), 1u);
    found.include(apart_and_aligned(first, bench.traits));
    found.include(keeps_patterns(bench, first));
    found.include(bench.quiet(first.size()));
    found.equal("blocks that a full heap had left", served(bench.ask(same(bench.lanes(), bytes))).size(), 0u);
    bench.free(first);
    found.include(bench.empty());
    auto const second = bench.fill(bytes);
    found.equal("blocks of the heap filled again", second.size(), first.size());
    bench.free(second);
    found.include(bench.empty());
  }
  return found;
}

/// One size after another: a heap that was full of one holds as many blocks of the other as a fresh
/// heap does.
template <class Allocator>
verdict fills_with_another_size(scenario const& with) {
  constexpr u64 pairs[][2] = {{64, 4096}, {4096, 64}, {100'000, 256}, {256, 100'000}, {20'000, 1000}, {1000, 20'000}};
  verdict found;
  for (u64 const pair : sweep(with, {0, 1, 2, 3, 4, 5})) {
    auto bench = harness<Allocator>::cramped(with);
    auto fresh = harness<Allocator>::cramped(with);
    fresh.commit_all_memory();
    auto const before = bench.fill(bench.capped(pairs[pair][0]));
    found.at_least("blocks of the first size", before.size(), 1u);
    bench.free(before);
    auto const after = bench.fill(bench.capped(pairs[pair][1]));
    found.equal("blocks of the second size", after.size(), fresh.fill(bench.capped(pairs[pair][1])).size());
    found.include(accounts_for(bench, after));
  }
  return found;
}

/// Random sizes until nothing is left, and then all freed, leave the heap as good as new.
template <class Allocator>
verdict recovers_from_mixed_sizes(scenario const& with) {
  auto bench = harness<Allocator>::cramped(with);
  auto fresh = harness<Allocator>::cramped(with);
  verdict found;
  for (u64 round = 0; round < 2; ++round) {
    auto const mixed = bench.fill(1, bench.capped(round ? 40'000 : 2000));
    found.at_least("blocks", mixed.size(), 1u);
    found.include(keeps_patterns(bench, mixed));
    found.include(accounts_for(bench, mixed));
  }
  found.equal("blocks afterwards", bench.fill(bench.capped(4096)).size(), fresh.fill(bench.capped(4096)).size());
  return found;
}

/// k frees into a full heap, by one thread or by many, make room for exactly k blocks.
template <class Allocator>
verdict serves_exactly_what_was_freed(scenario const& with) {
  verdict found;
  for (u64 const bytes : sweep_served<Allocator>(with, {64, 1000, 4096, 20'000})) {
    auto bench = harness<Allocator>::cramped(with);
    auto blocks = bench.fill(bytes);
    found.at_least("blocks of the full heap", blocks.size(), 2u);
    for (u64 const wanted : {u64{1}, u64{3}, bench.lanes(), u64{blocks.size() / 3}, u64{blocks.size()}}) {
      u64 const freed = std::min<u64>(wanted, blocks.size());
      random_sequence random{with.seed + wanted};
      for (u64 i = 0; i < freed; ++i)
        std::swap(blocks[i], blocks[i + random.below(static_cast<u32>(blocks.size() - i))]);
      holdings const gone{blocks.begin(), blocks.begin() + freed};
      if (wanted % 2)
        bench.run_as({1, 1}, free_each{}, bench.ref(), device_buffer<holding>{gone}.data(), freed, u64{0});
      else bench.free(gone);
      auto const back = served(bench.ask(same(freed + bench.lanes(), bytes)));
      found.equal("blocks served after so many frees", back.size(), freed);
      blocks.erase(blocks.begin(), blocks.begin() + freed);
      blocks.insert(blocks.end(), back.begin(), back.end());
      found.include(apart_and_aligned(blocks, bench.traits));
      found.include(bench.quiet(blocks.size()));
      if (!found.ok() || blocks.empty()) return found;
    }
    bench.free(blocks);
    found.include(bench.empty());
  }
  return found;
}

template <class Allocator>
verdict survives_exhaustion_many_times(scenario const& with) {
  auto bench = harness<Allocator>::cramped(with);
  verdict found;
  u64 const bytes = bench.capped(4096);
  u64 first = 0;
  for (u64 cycle = 0; cycle < (with.small ? 10 : 100) && found.ok(); ++cycle) {
    auto const blocks = bench.fill(bytes);
    if (cycle == 0) first = blocks.size();
    found.at_least("blocks", blocks.size(), bench.room_bytes() / bytes / 2);
    found.equal("blocks of this cycle", blocks.size(), first);
    bench.free(blocks);
  }
  found.include(bench.empty());
  return found;
}

/// Every worker fills its share of the heap with a checksum of its number and a counter, finds it
/// again, and frees; then as many slots are there as before. Source: Eckert 2014, section 5.4.
template <class Allocator>
verdict passes_the_checksum_test(scenario const& with) {
  harness<Allocator> bench{with};
  bench.commit_all_memory();
  verdict found;
  for (u64 const bytes : sweep_served<Allocator>(with, {64, 128, 1024, 8192})) {
    u64 const slots = bench.heap().available_slots(bytes);
    auto const blocks = bench.fill(bytes);
    found.equal("blocks of the full heap", blocks.size(), slots);
    for (u64 counter = 0; counter < 2; ++counter) found.include(keeps_patterns(bench, blocks, counter * slots));
    found.equal("slots of the full heap", bench.heap().available_slots(bytes), 0u);
    bench.free(blocks);
    found.equal("slots afterwards", bench.heap().available_slots(bytes), slots);
  }
  return found;
}

}}}  // namespace warpheap::WARPHEAP_BACKEND::conformance
