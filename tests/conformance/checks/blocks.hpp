// SPDX-License-Identifier: Apache-2.0
// Blocks are whole, apart, aligned, and keep what their holder wrote for as long as it holds them.
#pragma once

#include "../harness.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace conformance {

/// Sizes of a sweep: all of them, but in a small scenario the one that its seed picks.
inline std::vector<u64> sweep(scenario const& with, std::vector<u64> const& sizes) {
  return with.small ? std::vector<u64>{sizes[mix(with.seed ^ 0x512e) % sizes.size()]} : sizes;
}

/// Sizes of a sweep that the allocator serves; its largest size if it serves none of them.
template <class Allocator>
std::vector<u64> sweep_served(scenario const& with, std::vector<u64> sizes) {
  std::erase_if(sizes, [](u64 bytes) { return bytes > Allocator::traits.largest_bytes; });
  if (sizes.empty()) sizes.push_back(Allocator::traits.largest_bytes);
  return sweep(with, sizes);
}

/// Requests for `bytes` bytes, at most four a lane, that take up a third of the pool: none may be
/// refused. Where the allocator does not divide the pool itself, they take up an eighth, with an
/// allowance for what stands beside each block.
template <class Allocator>
u64 modest_count(harness<Allocator> const& bench, u64 bytes) {
  u64 const fit = bench.traits.exact_out_of_memory ? bench.room_for(bytes) / 3 : bench.pool_bytes() / 8 / (bytes + 112);
  return std::min<u64>(bench.lanes() * 4, fit);
}

/// Writes every block, and finds all patterns again.
template <class Allocator>
verdict keeps_patterns(harness<Allocator>& bench, holdings const& blocks, u64 salt = 0) {
  verdict found;
  bench.write(blocks, salt);
  found.equal("damaged blocks", bench.damaged(blocks, salt), 0u);
  return found;
}

template <class Allocator>
verdict serves_one_size(scenario const& with) {
  verdict found;
  for (u64 const bytes :
       sweep_served<Allocator>(with, {1, 16, 24, 40, 64, 100, 256, 1000, 1024, 2048, 4096, 9000, 20000})) {
    harness<Allocator> bench{with};
    u64 const count = modest_count(bench, bytes);
    auto const blocks = served(bench.ask(same(count, bytes)));
    found.at_least("blocks asked for", count, 1u);
    found.equal("blocks served", blocks.size(), count);
    found.include(keeps_patterns(bench, blocks));
    found.include(accounts_for(bench, blocks));
  }
  return found;
}

template <class Allocator>
verdict serves_mixed_sizes(scenario const& with) {
  verdict found;
  for (u64 const most : sweep_served<Allocator>(with, {64, 1024, 4096, 16384})) {
    harness<Allocator> bench{with};
    u64 const count = modest_count(bench, most);
    auto const blocks = served(bench.ask(uniform(count, 1, most, with.seed)));
    // Classes do not share slabs, so a small pool may run out of slabs, but not before half of the
    // requests are served.
    found.at_least("blocks served", blocks.size(), (count + 1) / 2);
    found.include(keeps_patterns(bench, blocks));
    found.include(accounts_for(bench, blocks));
  }
  return found;
}

/// Patterns stay while other blocks are taken, written, and freed.
template <class Allocator>
verdict keeps_contents_while_others_come_and_go(scenario const& with) {
  harness<Allocator> bench{with};
  verdict found;
  u64 const count = modest_count(bench, bench.capped(256)) / 4;
  auto const kept = served(bench.ask(uniform(count, 1, bench.capped(256), with.seed)));
  found.at_least("blocks kept", kept.size(), 1u);
  bench.write(kept, 1000);
  for (u64 round = 0; round < 4; ++round) {
    auto const passing = served(bench.ask(uniform(count, 1, bench.capped(512), with.seed + round)));
    bench.write(passing, 1'000'000 + round);
    found.equal("damaged blocks of those kept", bench.damaged(kept, 1000), 0u);
    found.equal("damaged blocks of those passing", bench.damaged(passing, 1'000'000 + round), 0u);
    bench.free(passing);
  }
  found.equal("damaged blocks at the end", bench.damaged(kept, 1000), 0u);
  bench.free(kept);
  found.include(bench.empty());
  return found;
}

/// A holder may use all of usable_size(), not only what it asked for.
template <class Allocator>
verdict lets_holders_use_usable_size(scenario const& with) {
  harness<Allocator> bench{with};
  verdict found;
  auto const blocks =
      served(bench.ask(uniform(modest_count(bench, bench.capped(2048)), 1, bench.capped(1500), with.seed)));
  auto const answers = bench.query(blocks);
  auto widened = blocks;
  for (size_t i = 0; i < blocks.size(); ++i) {
    found.at_least("usable bytes", answers[i].usable, blocks[i].bytes);
    widened[i].bytes = answers[i].usable;
  }
  found.at_least("blocks served", blocks.size(), 1u);
  found.include(apart_and_aligned(widened, {.alignment = bench.traits.alignment}));
  found.include(keeps_patterns(bench, widened));
  bench.free(blocks);
  found.include(bench.empty());
  return found;
}

}}}  // namespace warpheap::WARPHEAP_BACKEND::conformance
