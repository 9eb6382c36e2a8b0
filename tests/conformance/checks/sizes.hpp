// SPDX-License-Identifier: Apache-2.0
// Every size: zero, each size of a dense range, both sides of every class's edge, the whole pool,
// and more than any pool has.
#pragma once

#include "blocks.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace conformance {

/// One thread asks for each entry alone: holds it, writes all of it if it is small, or its ends,
/// and gives it back. `refused` counts the entries that an otherwise empty heap did not serve.
struct hold_each_alone {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, holding const* list, u64 count, u64* refused, u64* damaged) const {
    if (global_thread_index() != 0) return;
    for (u64 i = 0; i < count; ++i) {
      holding block{reinterpret_cast<u64>(heap.malloc(list[i].bytes)), list[i].bytes};
      if (!block.address) {
        ++*refused;
        continue;
      }
      holding const head{block.address, block.bytes < 65536 ? block.bytes : 4096};
      holding const tail{block.address + (block.bytes - head.bytes) / 16 * 16, head.bytes};
      write_pattern(head, i);
      if (tail.address != head.address) write_pattern(tail, i + count);
      *damaged += !holds_pattern(tail, tail.address != head.address ? i + count : i);
      heap.free(block.memory());
    }
  }
};

/// The largest size of every class, found by asking for one byte more than the last block could
/// hold.
struct walk_classes {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, holding* edges, u64 capacity, u64* count) const {
    if (global_thread_index() != 0) return;
    u64 bytes = 1;
    for (*count = 0; *count < capacity; ++*count) {
      void* const memory = heap.malloc(bytes);
      if (!memory) return;
      edges[*count] = {0, heap.usable_size(memory)};
      heap.free(memory);
      bytes = edges[*count].bytes + 1;
    }
  }
};

template <class Allocator>
verdict holds_each_alone(harness<Allocator>& bench, holdings const& sizes) {
  verdict found;
  device_buffer<u64> const counts(2);
  bench.transform(hold_each_alone{}, sizes, counts.data(), counts.data() + 1);
  found.at_least("sizes", sizes.size(), 1u);
  found.equal("sizes refused by an empty heap", counts[0], 0u);
  found.equal("sizes whose block did not keep its contents", counts[1], 0u);
  found.include(bench.empty());
  return found;
}

template <class Allocator>
verdict serves_every_small_size(scenario const& with) {
  harness<Allocator> bench{with};
  u64 const most = bench.capped(6000);
  return holds_each_alone(bench, with.small ? every(1 + with.seed % 16, most, 61) : every(1, most));
}

/// The largest sizes of the smallest classes, `most` of them; quarters of a doubling where the heap
/// does not tell its classes.
template <class Allocator>
holdings class_edges(harness<Allocator>& bench, u64 most) {
  holdings edges;
  if constexpr (requires { &Allocator::usable_size; }) {
    device_buffer<holding> const list(most);
    device_buffer<u64> const count(1);
    bench.run(walk_classes{}, bench.ref(), list.data(), most, count.data());
    edges = list.to_host();
    edges.resize(count[0]);
  } else {
    u64 const largest = bench.capped(std::min<u64>(bench.pool_bytes() / 4, 16 * mebibyte));
    for (u64 power = 16; power < largest; power *= 2)
      for (u64 quarter = 4; quarter < 8; ++quarter) edges.push_back({0, power / 4 * quarter});
  }
  return edges;
}

template <class Allocator>
verdict serves_both_sides_of_class_edges(scenario const& with, u64 most) {
  harness<Allocator> bench{with};
  verdict found;
  auto const edges = class_edges(bench, most);
  found.at_least("classes", edges.size(), bench.limited ? 1u : 4u);
  holdings sizes;
  for (size_t i = 0; i < edges.size(); ++i) {
    if (i) found.at_least("the next class's size", edges[i].bytes, edges[i - 1].bytes + 1);
    for (u64 const bytes : {edges[i].bytes - 1, edges[i].bytes, edges[i].bytes + 1})
      if (bytes && bytes <= edges.back().bytes) sizes.push_back({0, bytes});
  }
  found.include(holds_each_alone(bench, sizes));
  return found;
}

/// A large block may consist of many containers, one by one, so the time for blocks of every count
/// is quadratic in the pool: 11 s for the 2,048 containers of 64 MiB on an H200. So all counts are
/// tried in a pool of some hundreds. A larger pool, whose containers are larger, is tried with all
/// blocks within one container and some dozens of counts.
template <class Allocator>
verdict serves_both_sides_of_every_class_edge(scenario const& with) {
  constexpr u64 all = 4096, first = 160;
  size_t const few_containers = 10 * mebibyte;
  if (with.pool_bytes <= few_containers) return serves_both_sides_of_class_edges<Allocator>(with, all);
  // The larger pool first: the toolkit's cannot grow once it is used.
  auto found = serves_both_sides_of_class_edges<Allocator>(with, first);
  found.include(serves_both_sides_of_class_edges<Allocator>(with.with_pool(few_containers), all));
  return found;
}

/// A block as large as the empty pool, less a sixteenth, is served again and again, also after the
/// pool was full of small blocks.
template <class Allocator>
verdict serves_nearly_the_whole_pool(scenario const& wide) {
  auto const with = wide.less_contended();  // one lane writes each block
  harness<Allocator> bench{with};
  bench.commit_all_memory();
  verdict found;
  u64 const pool = bench.heap().statistics().pool_bytes;
  found.at_least("bytes of the pool", pool, with.pool_bytes - with.pool_bytes / 16);
  for (u64 const bytes : {pool, pool - pool / 16, pool / 2 + 1}) {
    auto const whole = served(bench.ask(same(2, bytes)));
    found.equal("blocks of more than half the pool", whole.size(), 1u);
    found.include(keeps_patterns(bench, whole));
    bench.free(whole);
    found.include(bench.empty());
    auto const small = bench.fill(with.small ? 1000 : 4096);
    found.at_least("bytes of small blocks", small.size() * small[0].bytes, pool / 2);
    bench.free(small);
  }
  found.include(bench.empty());
  return found;
}

/// No bytes, no block; and a lane that asks for none does not disturb those that ask for some.
template <class Allocator>
verdict answers_zero_bytes_with_null(scenario const& with) {
  harness<Allocator> bench{with};
  verdict found;
  auto requests = same(bench.lanes() + 1, 0);
  for (size_t i = 0; i < requests.size(); i += 1 + with.seed % 3) requests[i].bytes = 48;
  auto const list = bench.ask(requests);
  for (auto const& entry : list) found.equal("served", entry.address != 0, entry.bytes != 0);
  bench.free(list);
  found.include(bench.empty());
  return found;
}

/// Impossible sizes are refused, whatever arithmetic on them overflows, and the heap goes on
/// serving.
template <class Allocator>
verdict refuses_impossible_sizes(scenario const& with) {
  harness<Allocator> bench{with};
  verdict found;
  constexpr u64 most = ~u64{0};
  holdings requests;
  for (u64 const bytes : {most, most - 1, most - 14, most - 15, most - 16, most - 255, most - 4095, most / 2,
                          most / 2 + 1, most / 2 - 15, u64{1} << 62})
    requests.push_back({0, bytes});
  if constexpr (Allocator::traits.exact_out_of_memory)
    for (u64 const bytes : {u64{with.pool_bytes} + 1, u64{2 * with.pool_bytes}, u64{1} << 32, u64{1} << 40})
      if (bytes > with.pool_bytes) requests.push_back({0, bytes});
  constexpr u64 largest = Allocator::traits.largest_bytes;
  if constexpr (harness<Allocator>::limited)
    for (u64 const bytes : {largest + 1, largest + 16, 2 * largest}) requests.push_back({0, bytes});
  found.equal("impossible requests served", served(bench.ask(requests)).size(), 0u);
  for (u64 i = 1; i < bench.lanes(); i += 2) requests.push_back({0, 64});
  auto const blocks = served(bench.ask(requests));
  found.equal("possible requests served beside them", blocks.size(), bench.lanes() / 2);
  bench.free(blocks);
  found.include(bench.empty());
  return found;
}

template <class Allocator>
verdict ignores_a_null_free(scenario const& with) {
  harness<Allocator> bench{with};
  verdict found;
  auto requests = same(bench.lanes() * 2, 100);
  for (size_t i = 0; i < requests.size(); i += 2) requests[i].bytes = 0;
  auto const list = bench.ask(requests);
  found.equal("blocks served", served(list).size(), bench.lanes());
  bench.free(list);
  found.include(bench.empty());
  if constexpr (Allocator::traits.detects_misuse) {
    auto const counts = bench.heap().statistics();
    found.equal("misuse counted", counts.double_frees + counts.foreign_frees, 0u);
  }
  return found;
}

}}}  // namespace warpheap::WARPHEAP_BACKEND::conformance
