// SPDX-License-Identifier: Apache-2.0
// Frees that no caller may make: of a block that is free already, and of an address that is no
// block. Each is counted and ignored, and does the heap no harm.
#pragma once

#include "recovery.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace conformance {

/// Every thread frees every entry.
struct free_all_by_all {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, holding const* list, u64 count) const {
    for (u64 i = 0; i < count; ++i) heap.free(list[(i + global_thread_index()) % count].memory());
  }
};

template <class Allocator>
u64 misuse_counted(harness<Allocator>& bench) {
  auto const counts = bench.heap().statistics();
  return counts.double_frees + counts.foreign_frees;
}

/// Blocks in two halves, each of which is spread over the whole range of addresses.
struct interleaved {
  holdings kept, freed;

  explicit interleaved(holdings blocks) {
    std::sort(blocks.begin(), blocks.end(), [](auto const& a, auto const& b) { return a.address < b.address; });
    for (size_t i = 0; i < blocks.size(); ++i) (i % 2 ? freed : kept).push_back(blocks[i]);
  }
};

/// Freed twice, also by two threads at once: one free counts, the others are counted as double.
template <class Allocator>
verdict counts_double_frees(scenario const& with) {
  verdict found;
  for (u64 const bytes : sweep_served<Allocator>(with, {16, 64, 1000, 4096})) {
    auto bench = harness<Allocator>::cramped(with);
    // In a grid of one thread block, so that every thread frees every block: threads times blocks
    // frees.
    u64 const lanes = std::min<u64>(with.shape.threads, 64);
    interleaved const blocks{served(bench.ask(same(with.small ? 16 : 64, bytes)))};
    u64 const count = blocks.freed.size();
    found.at_least("blocks to free", count, 1u);
    bench.write(blocks.kept);
    device_buffer<holding> const list{blocks.freed};
    bench.run_as({1, static_cast<u32>(lanes)}, free_all_by_all{}, bench.ref(), list.data(), count);
    found.equal("double frees", bench.heap().statistics().double_frees, count * (lanes - 1));
    found.equal("foreign frees", bench.heap().statistics().foreign_frees, 0u);
    found.include(bench.quiet(blocks.kept.size()));
    bench.free(blocks.freed);
    found.equal("double frees", bench.heap().statistics().double_frees, count * lanes);
    found.equal("damaged blocks", bench.damaged(blocks.kept), 0u);
    found.include(accounts_for(bench, blocks.kept));
    auto fresh = harness<Allocator>::cramped(with);
    found.equal("blocks afterwards", bench.fill(bench.capped(4096)).size(), fresh.fill(bench.capped(4096)).size());
  }
  return found;
}

/// Double frees of a block that other lanes take and free meanwhile are undefined. Those of a block
/// that no lane takes are ignored even while the heap is busy with others.
template <class Allocator>
verdict ignores_double_frees_beside_traffic(scenario const& with) {
  auto bench = harness<Allocator>::cramped(with);
  verdict found;
  auto const blocks = bench.fill(bench.capped(4096));
  found.at_least("blocks", blocks.size(), 2u);
  interleaved const halves{blocks};
  bench.write(halves.kept);
  bench.free(halves.freed);
  u64 const count = halves.freed.size();
  bench.free(halves.freed);
  found.equal("misuse counted", misuse_counted(bench), count);
  auto const again = bench.fill(bench.capped(4096));
  found.equal("blocks served afterwards", again.size(), count);
  found.equal("damaged blocks", bench.damaged(halves.kept), 0u);
  auto all = halves.kept;
  all.insert(all.end(), again.begin(), again.end());
  found.include(accounts_for(bench, all));
  return found;
}

/// The lowest address of a block, which is where the pool's first slab starts. Leaves the heap as
/// new.
template <class Allocator>
u64 lowest_address(harness<Allocator>& bench) {
  u64 lowest = ~u64{0};
  for (auto const& block : bench.fill(bench.capped(4096))) lowest = std::min(lowest, block.address);
  bench.heap().reset();
  synchronize();
  return lowest;
}

/// Every address of the pool at a multiple of `step` that starts no live block, freed once, is
/// counted once and changes nothing: interior pointers, tails, free slabs, and the middle of large
/// blocks among them.
template <class Allocator>
verdict ignores_what_starts_no_block(scenario const& with) {
  harness<Allocator> bench{with};
  verdict found;
  u64 const base = lowest_address(bench);
  // One after the other, the largest first, so that a small pool has a place for each.
  holdings live;
  for (u64 const bytes : {300'000, 150'000, 20'000, 4096, 1000, 64, 48, 16})
    live.push_back(bench.ask(same(1, bench.capped(bytes))).front());
  found.equal("blocks", served(live).size(), 8u);
  if (!found.ok()) return found;
  bench.write(live);
  holdings wild;
  u64 const step = with.small ? 112 : 1008;
  for (u64 offset = with.seed % 7 * 16; offset < bench.pool_bytes(); offset += step)
    wild.push_back({base + offset, 16});
  for (auto const& block : live)
    for (u64 const offset : {u64{1}, u64{8}, u64{16}, block.bytes / 2, block.bytes - 1, block.bytes})
      wild.push_back({block.address + offset, 16});
  std::erase_if(wild, [&](auto const& entry) {
    return std::any_of(live.begin(), live.end(), [&](auto const& block) { return block.address == entry.address; });
  });
  found.at_least("wild pointers", wild.size(), 100u);
  for (auto const& answered : bench.query(wild)) {
    found.equal("usable bytes at a wild pointer", answered.usable, 0u);
    found.equal("a wild pointer is owned", answered.owned, 0u);
    if (!found.ok()) return found;
  }
  bench.free(wild);
  found.equal("misuse counted", misuse_counted(bench), wild.size());
  found.equal("damaged blocks", bench.damaged(live), 0u);
  found.include(accounts_for(bench, live));
  return found;
}

/// Memory of the host and of others, metadata, and numbers that are no pointers.
template <class Allocator>
verdict ignores_pointers_outside_the_pool(scenario const& with) {
  harness<Allocator> bench{with};
  verdict found;
  u64 const base = lowest_address(bench);
  device_buffer<u64> const elsewhere(64);
  u64 on_stack = 0;
  auto const live = served(bench.ask(same(bench.lanes(), 64)));
  found.equal("blocks", live.size(), bench.lanes());
  holdings wild;
  for (u64 const address :
       {u64{1}, u64{16}, u64{4096}, ~u64{0}, ~u64{15}, base - 1, base - 16, base - 4096, base - 65536,
        base + bench.pool_bytes(), base + bench.pool_bytes() + 16, base + bench.pool_bytes() + (u64{1} << 40),
        base - (u64{1} << 32), base + (u64{1} << 32), base + (u64{1} << 50), base ^ (u64{1} << 63),
        reinterpret_cast<u64>(elsewhere.data()), reinterpret_cast<u64>(&on_stack), bench.heap().handle()})
    wild.push_back({address, 16});
  // Just below the lowest block of the largest size there may be one of another size.
  std::erase_if(wild, [&](auto const& entry) {
    return std::any_of(live.begin(), live.end(), [&](auto const& block) { return block.address == entry.address; });
  });
  for (auto const& answered : bench.query(wild))
    found.equal("an address outside is ours", answered.usable + answered.owned, 0u);
  bench.free(wild);
  found.equal("misuse counted", misuse_counted(bench), wild.size());
  found.at_least("foreign frees", bench.heap().statistics().foreign_frees, wild.size() - (bench.limited ? 4 : 0));
  found.include(accounts_for(bench, live));
  return found;
}

}}}  // namespace warpheap::WARPHEAP_BACKEND::conformance
