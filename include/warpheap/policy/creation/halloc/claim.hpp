// SPDX-License-Identifier: Apache-2.0
// How one lane takes chunks of a slab that were promised to it before (halloc.A1).
#pragma once

#include "table.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace halloc_parts {

/// Chunks of a word that exist in a slab of `capacity` chunks (halloc.C4).
WARPHEAP_HOST_DEVICE constexpr u32 existing(u32 capacity, u32 word) {
  u32 const before = word_chunks * word;
  if (capacity >= before + word_chunks) return ~0u;
  return low_mask32(capacity > before ? capacity - before : 0);
}

/// What is free in a word, as a hint.
template <class Table>
WARPHEAP_DEVICE u32 look_at(Table const& table, u32 slab, u32 word, u32 capacity) {
  return ~taken(table.word(slab, word).load(order::relaxed)) & existing(capacity, word);
}

/// Takes those blocks of 2^length chunks that start at `starts` and are free as a whole.
///
/// seen    becomes what was taken before
/// returns where the blocks start that are ours now (halloc.C1)
template <class Table>
WARPHEAP_DEVICE u32 take_blocks(Table const& table, u32 slab, u32 word, u32 starts, u32 kind, u32 length, u32& seen) {
  atomic_ref<u64> const place = table.word(slab, word);
  if (length == 0) {
    // Blocks of one chunk need no look: to set a taken bit again changes nothing (halloc.C2).
    // acquire: what the last owners did to the chunks happens before we use them; pairs with the
    // release in free.
    seen = taken(place.fetch_or(with_blocks(0, starts, 0, kind), order::acquire));
    return starts & ~seen;
  }
  // relaxed: a hint; the exchange checks it.
  u64 now = place.load(order::relaxed);
  for (;;) {
    seen = taken(now);
    u32 const got = starts_in(chunks_of(starts, length) & ~seen, length);
    if (got == 0) return 0;
    u64 const more = with_blocks(now, chunks_of(got, length), length, kind);
    // acquire: as above. Fails only where another thread took or freed a block of the word, or
    // where we saw an old value.
    if (place.compare_exchange(now, more, order::acquire, order::relaxed)) return got;
  }
}

}}}  // namespace warpheap::WARPHEAP_BACKEND::halloc_parts
