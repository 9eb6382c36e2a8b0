// SPDX-License-Identifier: Apache-2.0
// A heap whose memory was saved and restored is the heap that it was.
#pragma once

#include "blocks.hpp"
#include "warpheap/heap/checkpoint.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace conformance {

/// Blocks that were live have their contents, those that came later are gone, and the heap goes on
/// serving and freeing.
template <class Allocator>
verdict is_as_it_was_after_a_restore(scenario const& with) {
  harness<Allocator> bench{with};
  verdict found;
  u64 const count = 2 * bench.lanes(), most = bench.capped(std::max<u64>(bench.pool_bytes() / count / 4, 16));
  auto const kept = served(bench.ask(uniform(count, 1, most, with.seed)));
  found.at_least("blocks to keep", kept.size(), count / 2);
  bench.write(kept);
  auto const image = save(bench.heap());
  for (u64 round = 0; round < 2; ++round) {
    auto some = kept;
    bench.free(split_off(some, kept.size() / 2));
    bench.write(some, 5);
    auto const others = served(bench.ask(uniform(count, 1, most, with.seed + 1 + round)));
    bench.write(others, 6);
    restore(bench.heap(), image);
    found.equal("damaged blocks", bench.damaged(kept), 0u);
    found.include(bench.quiet(kept.size()));
  }
  auto all = served(bench.ask(uniform(count, 1, most, with.seed + 3)));
  found.at_least("blocks served afterwards", all.size(), 1u);
  all.insert(all.end(), kept.begin(), kept.end());
  found.include(apart_and_aligned(all, bench.traits));
  found.include(accounts_for(bench, all));
  return found;
}

}}}  // namespace warpheap::WARPHEAP_BACKEND::conformance
