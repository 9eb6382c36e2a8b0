// SPDX-License-Identifier: Apache-2.0
// The heap's reports are true: slots that can be allocated, blocks that are live, bytes that are
// used; and a reset heap is as good as new.
#pragma once

#include "misuse.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace conformance {

template <class Allocator>
u64 slots_on_device(harness<Allocator>& bench, u64 bytes) {
  device_buffer<u64> const slots(1);
  bench.run(count_slots{}, bench.ref(), bytes, slots.data());
  return slots[0];
}

/// Host and device count the same number of slots, and that many there are.
template <class Allocator>
verdict counts_slots_rightly(scenario const& with) {
  verdict found;
  for (u64 const bytes : sweep_served<Allocator>(with, {64, 1000, 4096, 20'000, 100'000})) {
    harness<Allocator> bench{with};
    bench.commit_all_memory();
    holdings held;
    u64 const other = bench.capped(1000);
    // An empty heap; one filled by half with another size; one from which every second block was
    // freed; a full one.
    for (u64 state = 0; state < 4; ++state) {
      if (state == 1) held = served(bench.ask(same(bench.heap().available_slots(other) / 2, other)));
      if (state == 2) {
        interleaved halves{bench.fill(bytes)};
        bench.free(halves.freed);
        held.insert(held.end(), halves.kept.begin(), halves.kept.end());
      }
      u64 const promised = bench.heap().available_slots(bytes);
      if (state == 0) found.at_least("slots", promised, 1u);
      found.equal("slots counted by the device", slots_on_device(bench, bytes), promised);
      auto const blocks = bench.fill(bytes);
      found.equal("blocks that the slots turned out to be", blocks.size(), promised);
      found.equal("slots of the full heap", slots_on_device(bench, bytes), 0u);
      if (state < 2) bench.free(blocks);
      else held.insert(held.end(), blocks.begin(), blocks.end());
    }
    bench.free(held);
    found.include(bench.empty());
  }
  return found;
}

/// Blocks of up to `most` bytes, and a large one, of which every second was freed again.
template <class Allocator>
interleaved every_second_block(harness<Allocator>& bench, u64 most) {
  auto requests = uniform(modest_count(bench, most), 1, most, bench.with().seed);
  requests.push_back({0, bench.capped(90'000)});
  interleaved halves{served(bench.ask(requests))};
  bench.free(halves.freed);
  return halves;
}

/// Live blocks are listed once each, in address order, with their usable bytes; freed blocks are
/// not.
template <class Allocator>
verdict lists_the_live_blocks(scenario const& with) {
  harness<Allocator> bench{with};
  verdict found;
  auto const kept = every_second_block(bench, bench.capped(3000)).kept;
  auto const answers = bench.query(kept);
  found.at_least("live blocks", kept.size(), 1u);
  size_t next = 0;
  u64 bytes_listed = 0;
  bench.heap().for_each_live([&](void const* memory, size_t bytes) {
    if (next < kept.size()) {
      found.equal("address listed", reinterpret_cast<u64>(memory), kept[next].address);
      found.equal("bytes listed", bytes, answers[next].usable);
    }
    ++next;
    bytes_listed += bytes;
  });
  found.equal("blocks listed", next, kept.size());
  found.equal("live bytes", bench.heap().statistics().live_bytes, bytes_listed);
  bench.free(kept);
  bench.heap().for_each_live([&](void const*, size_t bytes) { found.add("a dead block listed, ", bytes, " bytes"); });
  found.include(bench.empty());
  return found;
}

/// owns() and usable_size() distinguish live blocks from freed ones.
template <class Allocator>
verdict knows_what_it_owns(scenario const& with) {
  harness<Allocator> bench{with};
  verdict found;
  auto const halves = every_second_block(bench, bench.capped(2000));
  found.at_least("blocks", halves.kept.size(), 1u);
  auto const live = bench.query(halves.kept);
  for (size_t i = 0; i < live.size(); ++i) {
    found.at_least("usable bytes of a live block", live[i].usable, halves.kept[i].bytes);
    found.equal("a live block is owned", live[i].owned, 1u);
  }
  for (auto const& answered : bench.query(halves.freed))
    found.equal("a dead block is known", answered.usable + answered.owned, 0u);
  found.equal("nullptr is known", bench.query({holding{}})[0].usable + bench.query({holding{}})[0].owned, 0u);
  bench.free(halves.kept);
  found.include(bench.empty());
  return found;
}

template <class Allocator>
verdict keeps_exact_statistics(scenario const& with) {
  harness<Allocator> bench{with};
  bench.commit_all_memory();
  verdict found;
  auto const fresh = bench.heap().statistics();
  found.at_least("bytes of the pool", fresh.pool_bytes, with.pool_bytes - with.pool_bytes / 16);
  found.at_least("bytes asked for", u64{with.pool_bytes}, fresh.pool_bytes);
  found.equal("live bytes of a fresh heap", fresh.live_bytes, 0u);
  auto const blocks = bench.fill(bench.capped(1000));
  auto const full = bench.heap().statistics();
  u64 usable = 0;
  for (auto const& answered : bench.query(blocks)) usable += answered.usable;
  found.equal("live blocks", full.live_blocks, blocks.size());
  found.equal("live bytes", full.live_bytes, usable);
  // A call that waits is refused each time that it tries.
  u64 const refused = full.failures - fresh.failures;
  if constexpr (waits_for_memory<Allocator>) found.at_least("refusals", refused, bench.lanes());
  else found.equal("refusals", refused, bench.lanes());
  found.at_least("slabs in all", full.slabs, full.free_slabs + full.empty_slabs + full.run_slabs);
  found.equal("empty slabs of a full heap", full.empty_slabs + full.free_slabs, 0u);
  bench.free(blocks);
  auto const after = bench.heap().statistics();
  found.equal("live bytes at the end", after.live_bytes, 0u);
  found.equal("slabs in use by an empty heap", after.slabs - after.free_slabs - after.empty_slabs, 0u);
  found.include(bench.empty());
  return found;
}

/// A reset frees everything and forgets what was counted, in whatever state the heap was.
template <class Allocator>
verdict is_as_new_after_a_reset(scenario const& with) {
  harness<Allocator> bench{with};
  harness<Allocator> fresh{with};
  verdict found;
  for (u64 round = 0; round < 2; ++round) {
    interleaved halves{bench.fill(bench.capped(round ? 100 : 5000), bench.capped(5000))};
    found.at_least("blocks", halves.freed.size(), 1u);
    bench.free(halves.freed);
    if constexpr (Allocator::traits.detects_misuse) {
      bench.free(halves.freed);
      found.equal("misuse counted", misuse_counted(bench), halves.freed.size());
    }
    bench.heap().reset();
    synchronize();
    found.include(bench.empty());
    if constexpr (requires { bench.heap().statistics(); }) {
      auto const counts = bench.heap().statistics();
      found.equal("counts after a reset", counts.double_frees + counts.foreign_frees + counts.failures, 0u);
    }
    u64 const blocks = bench.fill(bench.capped(4096)).size();
    found.equal("blocks of a reset heap", blocks, fresh.fill(bench.capped(4096)).size());
    bench.heap().reset();
    fresh.heap().reset();
    synchronize();
  }
  return found;
}

}}}  // namespace warpheap::WARPHEAP_BACKEND::conformance
