// SPDX-License-Identifier: Apache-2.0
// Blocks of a size that a part of a heap could give, counted by the threads of a kernel.
#pragma once

#include "../slot_survey.hpp"
#include "claim.hpp"
#include "supply.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace halloc_parts {

/// Gives the unused slabs of a part of the heap back to TBuddy.
template <class Table>
WARPHEAP_COLD void return_unused(Table table, slot_share share) {
  slab_supply<Table> const supply{table};
  u32 const end = static_cast<u32>(share.end(table.slabs()));
  WARPHEAP_NO_UNROLL
  for (u32 slab = static_cast<u32>(share.first(table.slabs())); slab < end; ++slab) {
    // Most slabs are in use and need no mutex.
    if (!table.load(slab).unused()) continue;
    slab_state seen;
    scoped_lock const alone{table.moving()};  // halloc.P1
    if (supply.lock_unused(slab, seen)) supply.unmake(slab);
  }
}

/// Blocks of a size in a part of the heap: those for which its slabs have room, and those of the
/// slabs for which TBuddy has room.
template <class Table>
WARPHEAP_COLD slot_part count_blocks(Table table, u32 size, slot_share share) {
  u32 const kind = kind_of(size), length = length_of(size);
  u32 const capacity = table.geometry().capacity(kind), end = static_cast<u32>(share.end(table.slabs()));
  slot_part part;
  if constexpr (Table::config.split_percent == 0) {
    u64 const slab_bytes = u64{1} << table.geometry().slab_log2();
    part.count = table.large().count_slots(slab_bytes, share).count * (capacity >> length);
  }
  for (u32 slab = static_cast<u32>(share.first(table.slabs())); slab < end; ++slab) {
    slab_state const now = table.load(slab);
    if (now.phase() == slab_phase::free || now.empty()) part.count += capacity >> length;
    else if (now.serves(kind) && now.room(capacity, length) != 0)
      for (u32 word = 0; word < table.geometry().words(kind); ++word)
        part.count += popcount(starts_in(look_at(table, slab, word, capacity), length));
  }
  return part;
}

}}}  // namespace warpheap::WARPHEAP_BACKEND::halloc_parts
