// How one lane takes chunks of a slab, of which as many as it takes were promised to it (A1).
#pragma once

#include "slab_table.hpp"

namespace warpheap::inline WARPHEAP_BACKEND::chunks {

/// Chunks of a word that exist in a slab of `capacity` chunks (C4).
WARPHEAP_HOST_DEVICE constexpr u32 existing(u32 capacity, u32 word) {
  u32 const before = word_chunks * word;
  return capacity >= before + word_chunks ? ~0u : low_mask32(capacity > before ? capacity - before : 0);
}

/// What is free in a word, as a hint.
template <class Table>
WARPHEAP_DEVICE u32 look_at(Table const& table, u32 slab, u32 word, u32 capacity) {
  return ~taken(table.word(slab, word).load(order::relaxed)) & existing(capacity, word);
}

/// Gives back the free parts of blocks of which others have a part too.
template <class Table>
WARPHEAP_COLD void undo_parts(Table table, u32 slab, u32 word, u32 parts) {
  // release: as in free, whose place in the chain we have taken.
  table.word(slab, word).fetch_and(~u64{parts}, order::release);
  table.subtract(slab, 0);  // A2: somebody may have seen them taken
}

/// Takes the blocks of 2^length chunks that start at `starts`, as many as are free as a whole.
///
/// seen    becomes what was taken before
/// returns where the blocks start that are ours now (C1); they know their length (C2)
template <class Table>
WARPHEAP_DEVICE u32 take_blocks(Table const& table, u32 slab, u32 word, u32 starts, u32 length, u32& seen) {
  u32 const wanted = chunks_of(starts, length);
  // acquire: what the last owners did to the chunks happens before we use them; pairs with the release in free.
  seen = taken(table.word(slab, word).fetch_or(wanted, order::acquire));
  u32 const got = starts_in(wanted & ~seen, length), ours = chunks_of(got, length);
  if (length == 0) return got;
  // relaxed: chunks of our own (C2); what hands a block on orders who frees it.
  if (ours != 0) table.word(slab, word).fetch_or(joints_of(ours, length), order::relaxed);
  if (u32 const parts = wanted & ~seen & ~ours) undo_parts(table, slab, word, parts);
  return got;
}

}  // namespace warpheap::inline WARPHEAP_BACKEND::chunks
