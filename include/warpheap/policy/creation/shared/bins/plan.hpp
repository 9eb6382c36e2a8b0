// SPDX-License-Identifier: Apache-2.0
// How a pool is cut: into chunks of one size, shared out among arenas.
//
// A pool has two chunks for each multiprocessor (or each of `arenas`) if those need not be smaller
// than 128 KiB, and at least sixteen (eight with wide bins) if the smallest chunks allow it. Chunks
// are no smaller than that: smaller ones lose more of themselves to their special bin. There are so
// few arenas that each has two chunks: an arena's last chunk is partly used, and other arenas use
// it only when they have none.
#pragma once

#include "table.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace bins {

inline constexpr u32 chunks_an_arena = 2;

struct pool_plan {
  u32 chunks;
  u32 arenas;
  u32 chunk_log2;

  WARPHEAP_HOST_DEVICE constexpr u64 pool_bytes() const { return u64{chunks} << chunk_log2; }

  /// The table of a pool at `pool`, with its words at `words`.
  template <class Layout>
  WARPHEAP_HOST_DEVICE bins::table<Layout> table(u8* pool, u8* words) const {
    return bins::table<Layout>{known_place{pool, words, bins::table<Layout>::shape_of(chunks, arenas, chunk_log2)}};
  }
};

WARPHEAP_HOST_DEVICE constexpr pool_plan plan_pool(u64 pool_bytes, creation::ualloc_config config,
                                                   u32 multiprocessors) {
  // A chunk that is less than a few times as large as its largest bin would leave much of it
  // unused.
  u32 const least_log2 = config.wide_bins ? 17 : 15, to_share = config.wide_bins ? 8 : 16;
  u32 const wanted = config.arenas != 0 ? config.arenas : multiprocessors;
  u32 log2 = config.chunk_log2;
  while (log2 > 17 && pool_bytes >> log2 < chunks_an_arena * wanted) --log2;
  while (log2 > least_log2 && pool_bytes >> log2 < to_share) --log2;
  u32 const chunks = static_cast<u32>(pool_bytes >> log2);
  u32 const shares = chunks / chunks_an_arena;
  u32 const arenas = wanted < shares ? wanted : shares;
  return {chunks, arenas != 0 ? arenas : 1, log2};
}

}}}  // namespace warpheap::WARPHEAP_BACKEND::bins
