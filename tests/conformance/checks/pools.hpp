// SPDX-License-Identifier: Apache-2.0
// Pools of all sizes, odd ones among them: all of the pool is used, from its first byte to its
// last, and counted right. On a GPU, pools of up to all its free memory.
#pragma once

#include "blocks.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace conformance {

/// A pool filled with blocks of a 64th of it, or the largest there are, reaches from one end to the
/// other.
template <class Allocator>
verdict uses_all_of_a_pool(scenario const& with) {
  harness<Allocator> bench{with};
  bench.commit_all_memory();
  verdict found;
  auto const fresh = bench.heap().statistics();
  found.at_least("bytes of the pool", fresh.pool_bytes, with.pool_bytes - with.pool_bytes / 16);
  found.at_least("bytes asked for", u64{with.pool_bytes}, fresh.pool_bytes);
  found.at_least("the metadata promised for what the pool may be",
                 bench.heap().pool_bytes() / 1000 * Allocator::traits.metadata_permille + 65536, fresh.metadata_bytes);
  u64 const bytes = bench.capped(with.pool_bytes / 64);
  auto const blocks = bench.fill(bytes);
  found.at_least("bytes in blocks", blocks.size() * bytes, with.pool_bytes / 2);
  u64 low = ~u64{0}, high = 0;
  holdings ends;
  for (auto const& block : blocks) {
    low = std::min(low, block.address);
    high = std::max(high, block.address + block.bytes);
    ends.push_back({block.address, 64});
    ends.push_back({align_down(block.address + block.bytes - 64, 16), 64});
  }
  found.at_least("bytes from end to end", high - low, with.pool_bytes - with.pool_bytes / 8);
  found.include(keeps_patterns(bench, ends));
  found.include(accounts_for(bench, blocks));
  return found;
}

template <class Allocator>
verdict uses_pools_of_any_size(scenario const& with) {
  verdict found;
  std::vector<u64> sizes{mebibyte, mebibyte + 1, mebibyte + 4097, 3 * mebibyte, 3 * mebibyte - 16};
  if (!with.small) sizes.insert(sizes.end(), {100 * mebibyte + 12345, 1024 * mebibyte});
#if defined(__CUDACC__)
  size_t free = 0, total = 0;
  cuda_backend::throw_on_error(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  for (u64 const large : {4096 * mebibyte, 128 * 1024 * mebibyte})
    if (large + large / 32 + large / 1000 * Allocator::traits.metadata_permille < free) sizes.push_back(large);
#endif
      // The host looks at every block.
#if defined(__CUDACC__)
  constexpr u64 most_blocks = u64{1} << 25;
#else
  constexpr u64 most_blocks = u64{1} << 19;
#endif
  std::erase_if(sizes, [](u64 bytes) { return bytes / Allocator::traits.largest_bytes > most_blocks; });
  for (u64& bytes : sizes) bytes = align_up(bytes, pool_unit<Allocator>());
  for (u64 const bytes : sweep(with, sizes)) {
    auto const one = uses_all_of_a_pool<Allocator>(with.with_shape({2, 50}).with_pool(bytes));
    if (!one.ok()) found.add("pool of ", bytes, " bytes:");
    found.include(one);
  }
  return found;
}

}}}  // namespace warpheap::WARPHEAP_BACKEND::conformance
