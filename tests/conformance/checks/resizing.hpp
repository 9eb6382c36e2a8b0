// SPDX-License-Identifier: Apache-2.0
// realloc, calloc and aligned_alloc, each called by every lane with sizes of its own.
#pragma once

#include "blocks.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace conformance {

/// Resizes every entry to the bytes in `wanted`; odd lanes of every third warp call from a branch
/// of their own.
struct reallocate_each {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, holding* list, u64 count, u64 const* wanted, u64* results) const {
    for (u64 i = global_thread_index(); i < count; i += grid_threads()) {
      if (simt::warp_id() % 3 == 0 && simt::lane_id() % 2)
        results[i] = reinterpret_cast<u64>(heap.realloc(list[i].memory(), list[i].bytes, wanted[i]));
      else results[i] = reinterpret_cast<u64>(resize(heap, list[i], wanted[i]));
    }
  }

  /// By the form of realloc that asks the heap for the old size, where there is one.
  template <class Heap>
  WARPHEAP_DEVICE static void* resize(Heap heap, holding block, u64 bytes) {
    if constexpr (requires { heap.realloc(block.memory(), bytes); }) return heap.realloc(block.memory(), bytes);
    else return heap.realloc(block.memory(), block.bytes, bytes);
  }
};

struct callocate_each {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, holding* list, u64 count, u64 objects) const {
    for (u64 i = global_thread_index(); i < count; i += grid_threads())
      list[i].address = reinterpret_cast<u64>(heap.calloc(objects, list[i].bytes));
  }
};

/// Counts the blocks of `objects` times the entry's bytes with a byte that is not 0.
struct find_nonzero {
  WARPHEAP_DEVICE void operator()(holding const* list, u64 count, u64 objects, u64* nonzero) const {
    for (u64 i = global_thread_index(); i < count; i += grid_threads()) {
      u8 any = 0;
      for (u64 byte = 0; list[i].address && byte < list[i].bytes * objects; ++byte)
        any |= static_cast<u8 const*>(list[i].memory())[byte];
      if (any) atomic_ref<u64>{*nonzero}.fetch_add(1, order::relaxed);
    }
  }
};

struct allocate_aligned_each {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, holding* list, u64 count, u64 const* alignments) const {
    for (u64 i = global_thread_index(); i < count; i += grid_threads())
      list[i].address = reinterpret_cast<u64>(heap.aligned_alloc(alignments[i], list[i].bytes));
  }
};

/// Resizes every block at once; the list comes back with the results and the new sizes.
template <class Allocator>
holdings reallocate(harness<Allocator>& bench, holdings const& list, std::vector<u64> const& wanted) {
  device_buffer<u64> const sizes{wanted}, results(wanted.size());
  bench.transform(reallocate_each{}, list, static_cast<u64 const*>(sizes.data()), results.data());
  auto const addresses = results.to_host();
  holdings resized;
  for (size_t i = 0; i < wanted.size(); ++i) resized.push_back({addresses[i], wanted[i]});
  return resized;
}

/// Contents move along, as much of them as fits. Sizes lie on both sides of what a lane copies
/// alone, and of a slab.
template <class Allocator>
verdict reallocates_with_contents(scenario const& with) {
  harness<Allocator> bench{with};
  verdict found;
  u64 const count = std::min<u64>(with.lanes() * 2, with.pool_bytes / 32768);
  u64 const most = bench.capped(with.seed % 3 ? 700 : 9000);
  auto blocks = bench.ask(uniform(count, 1, most, with.seed));
  found.equal("blocks", served(blocks).size(), count);
  bench.write(blocks);
  for (u64 round = 0; round < 3 && found.ok(); ++round) {
    std::vector<u64> wanted;
    for (auto const& request : uniform(count, 1, most, with.seed + 1 + round)) wanted.push_back(request.bytes);
    auto const resized = reallocate(bench, blocks, wanted);
    found.equal("blocks", served(resized).size(), count);
    found.include(apart_and_aligned(resized, {.alignment = bench.traits.alignment}));
    auto common = resized;
    for (size_t i = 0; i < count; ++i) common[i].bytes = std::min(blocks[i].bytes, resized[i].bytes);
    found.equal("blocks that lost contents", bench.damaged(common), 0u);
    found.include(bench.quiet(count));
    found.include(keeps_patterns(bench, resized));
    blocks = resized;
  }
  bench.free(blocks);
  found.include(bench.empty());
  return found;
}

/// A block that still fits its class stays where it is.
template <class Allocator>
verdict reallocates_in_place(scenario const& with) {
  harness<Allocator> bench{with};
  verdict found;
  auto const blocks =
      served(bench.ask(uniform(modest_count(bench, bench.capped(1024)), 100, bench.capped(1000), with.seed)));
  std::vector<u64> usable;
  for (auto const& answered : bench.query(blocks)) usable.push_back(answered.usable);
  found.at_least("blocks", blocks.size(), 1u);
  auto const resized = reallocate(bench, blocks, usable);
  for (size_t i = 0; i < blocks.size(); ++i) found.equal("address", resized[i].address, blocks[i].address);
  bench.free(resized);
  found.include(bench.empty());
  return found;
}

/// realloc(nullptr, n) allocates, realloc(p, 0) frees, and one that cannot be served leaves the
/// block as it is.
template <class Allocator>
verdict reallocates_at_the_edges(scenario const& wide) {
  auto const with = fitted(wide.less_contended(), Allocator::traits.largest_bytes);
  harness<Allocator> bench{with};
  verdict found;
  auto blocks = bench.ask(same(with.lanes() + 2, 100));
  holdings given_back;
  for (size_t i = 0; i < blocks.size(); i += 3) given_back.push_back(std::exchange(blocks[i], {}));
  bench.free(given_back);
  found.include(keeps_patterns(bench, blocks));
  std::vector<u64> wanted;
  for (size_t i = 0; i < blocks.size(); ++i) {
    u64 const unserved = i % 3 == 1 ? 0 : ~u64{0} / 2 - i;
    wanted.push_back(i % 3 == 0 ? 80 : unserved);
  }
  auto const resized = reallocate(bench, blocks, wanted);
  holdings left;
  for (size_t i = 0; i < blocks.size(); ++i) {
    found.equal("served", resized[i].address != 0, i % 3 == 0);
    if (i % 3 == 0) left.push_back(resized[i]);
    if (i % 3 == 2) left.push_back(blocks[i]);
    if (i % 3 == 1) blocks[i].address = 0;
    if (i % 3 == 0) blocks[i].address = 0;
  }
  found.equal("damaged blocks that could not grow", bench.damaged(blocks), 0u);
  found.include(accounts_for(bench, left));
  return found;
}

/// Zeroed though the memory was written before; and a product that overflows is refused.
template <class Allocator>
verdict callocates_zeroes(scenario const& with) {
  harness<Allocator> bench{with};
  verdict found;
  u64 const count = modest_count(bench, bench.capped(3000)) / 2 + 1;
  auto const dirty = bench.ask(uniform(count, 1, bench.capped(3000), with.seed));
  bench.write(dirty, 77);
  bench.free(served(dirty));
  constexpr u64 objects = 3;
  auto const blocks =
      bench.transform(callocate_each{}, uniform(count, 1, bench.capped(3000) / objects, with.seed), objects);
  device_buffer<u64> const nonzero(1);
  device_buffer<holding> const list{blocks};
  bench.run(find_nonzero{}, list.data(), static_cast<u64>(blocks.size()), objects, nonzero.data());
  found.at_least("blocks", served(blocks).size(), (count + 1) / 2);
  found.equal("blocks that are not zeroed", nonzero[0], 0u);
  bench.free(served(blocks));
  for (u64 const huge : {~u64{0} / 3 + 1, ~u64{0} / 2, ~u64{0}, (u64{1} << 63) + 16})
    found.equal("overflowing products served",
                served(bench.transform(callocate_each{}, same(with.lanes(), huge), objects)).size(), 0u);
  found.equal("products of zero served", served(bench.transform(callocate_each{}, same(2, 64), u64{0})).size(), 0u);
  found.include(bench.empty());
  return found;
}

template <class Allocator>
// NOLINTNEXTLINE(readability-function-cognitive-complexity)
verdict aligns_as_asked(scenario const& with) {
  harness<Allocator> bench{with};
  verdict found;
  holdings requests;
  std::vector<u64> alignments;
  auto const ask = [&](u64 alignment, u64 bytes) {
    alignments.push_back(alignment);
    requests.push_back({0, bytes});
  };
  // Blocks of limited size may have fixed places, which are aligned as they are.
  u64 const most = bench.limited ? bench.traits.self_aligned_up_to : 4096;
  for (u64 alignment = 1; alignment <= most; alignment *= 2)
    for (u64 const bytes : {u64{1}, u64{24}, alignment, alignment + 1, 3 * alignment})
      if (bytes == bench.capped(bytes)) ask(alignment, bytes);
  size_t const promised = requests.size();
  for (u64 alignment = 2 * most; alignment; alignment *= 2)
    for (u64 const bytes : {u64{64}, bench.capped(5000)}) ask(alignment, bytes);
  size_t const powers = requests.size();
  for (u64 const alignment : {0, 3, 15, 24, 100, 4095, 4097}) ask(alignment, 64);
  ask(16, 0);
  ask(4096, 0);
  ask(16, ~u64{0} - 15);
  if (bench.limited) ask(16, bench.traits.largest_bytes + 1);
  holdings blocks;
  // A few at a time: a small pool has no room for all the classes at once.
  for (size_t first = 0; first < requests.size(); first += 16) {
    size_t const last = std::min(first + 16, requests.size());
    device_buffer<u64> const some{
        {alignments.begin() + static_cast<i64>(first), alignments.begin() + static_cast<i64>(last)}};
    auto const list =
        bench.transform(allocate_aligned_each{},
                        {requests.begin() + static_cast<i64>(first), requests.begin() + static_cast<i64>(last)},
                        static_cast<u64 const*>(some.data()));
    for (size_t i = first; i < last; ++i) {
      auto const& block = list[i - first];
      if (i < promised && !block.address) found.add(block.bytes, " bytes aligned to ", alignments[i], " refused");
      if (i >= powers && block.address) found.add(block.bytes, " bytes aligned to ", alignments[i], " served");
      if (block.address && block.address % alignments[i]) found.add("at ", block.address, ", not ", alignments[i]);
    }
    found.include(apart_and_aligned(served(list), {.alignment = bench.traits.alignment}));
    found.include(keeps_patterns(bench, served(list), first));
    bench.free(served(list));
    found.include(bench.empty());
  }
  return found;
}

}}}  // namespace warpheap::WARPHEAP_BACKEND::conformance
