// SPDX-License-Identifier: Apache-2.0
// How blocks of chunks are found by their address and given back. One operation gives back all
// blocks of a warp that lie in one word.
//
// A free is one compare-exchange of the word in which it saw the block, so it clears a whole live
// block or nothing (halloc.C2, halloc.C5). It then subtracts exactly the chunks that it cleared,
// even if another
// thread freed the block before or at the same moment, or frees it later.
#pragma once

#include "../../../sync/warp_aggregate.hpp"
#include "claim.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace halloc_parts {

/// The chunk at an address, in a slab with chunks of one kind.
struct block_address {
  u32 slab;
  u32 word;   ///< of the slab
  u32 start;  ///< of the word: the chunk's bit; 0 if no block may start there
  u32 kind;
};

/// Finds and frees blocks in the slabs of a heap. Stateless; `table` is the heap.
template <class Table>
class block_release {
 public:
  WARPHEAP_DEVICE explicit block_release(Table const& table) : table_{table} {}

  /// The chunk that starts at an offset, in a slab with chunks of a kind.
  WARPHEAP_DEVICE block_address locate(u32 slab, u64 offset, u32 kind) const {
    u32 const inside = static_cast<u32>(offset & low_mask(table_.geometry().slab_log2()));
    u32 const unit = inside >> (4 + kind / 2 * 4), chunk = kind % 2 ? third(inside >> (3 + kind / 2 * 4)) : unit;
    if (chunk * chunk_bytes(kind) != inside || chunk >= table_.geometry().capacity(kind)) return {};
    return {slab, chunk / word_chunks, 1u << chunk % word_chunks, kind};
  }

  /// The newest value of a chunk's word, by a read-modify-write.
  WARPHEAP_DEVICE u64 newest_word(block_address const& at) const {
    // relaxed: bits alone; the caller owns what they stand for, or does not use it.
    return table_.word(at.slab, at.word).fetch_or(0, order::relaxed);
  }

  /// Gives back the live block that starts at `at`, together with those of the lanes that are here.
  /// False if none starts there, or a lower lane gave it back.
  WARPHEAP_DEVICE bool destroy(block_address const& at) const {
    lane_mask const active = simt::active_mask();
    u64 const record = u64{at.slab} * table_.geometry().record_bytes();
    // Words are 8 bytes, so a kind fits beside their address: lanes that were told different kinds
    // are in different groups.
    lane_group const group =
        group_by(active, reinterpret_cast<u64>(table_.metadata()) + record + 8 * at.word + at.kind);
    u32 const starts = union_of_groups(active, group, at.start);
    // This puts the other lanes' last writes to their blocks before the leader's release.
    simt::sync_warp(active);
    u32 freed = 0;
    if (group.leads) freed = release(at, starts);
    // No lane returns before the blocks are back: it must be served if it asks next, even if the
    // heap is full but for them.
    simt::sync_warp(active);
    freed = simt::shuffle(active, freed, group.leader);
    return popcount(freed) == group.size || is_ours(group.mask, at.start, freed);
  }

  /// Gives back the live blocks that start at `starts` in one word; returns where they started. Any
  /// lane alone.
  WARPHEAP_DEVICE u32 release(block_address const& at, u32 starts) const {
    atomic_ref<u64> const place = table_.word(at.slab, at.word);
    // relaxed: a hint, which may be stale if the pointer came by a shuffle or a relaxed operation;
    // the exchange checks it.
    u64 now = place.load(order::relaxed);
    bool subtracted = false;
    for (;;) {
      u32 live = live_starts(now, starts, at.kind);
      if (live == 0) {
        now = newest_word(at);
        live = live_starts(now, starts, at.kind);
      }
      if (live == 0) return 0;
      u32 const chunks = Table::steps::chunks_at(now, live);
      if (!Table::steps::clears_first && !subtracted) {
        table_.subtract(at.slab, popcount(chunks));
        subtracted = true;
      }
      Table::steps::linger_in_free();
      // release: what the owners did to the blocks happens before the next owners' use; pairs with
      // the acquire in take_blocks().
      if (!place.compare_exchange(now, without_blocks(now, chunks), order::release, order::relaxed)) continue;
      Table::steps::linger_in_free();
      // halloc.A1: exactly what was cleared is subtracted.
      if (Table::steps::clears_first) table_.subtract(at.slab, popcount(chunks));
      return live;
    }
  }

 private:
  /// eights / 3: this many times 8 bytes, in chunks of 24 bytes.
  WARPHEAP_DEVICE static u32 third(u32 eights) {
    constexpr fast_divider by_three{3};
    return by_three.quotient(eights);
  }

  /// Whether our block is among those that were freed for `mask`, and no lower lane named it too.
  /// All lanes of the mask call.
  WARPHEAP_COLD static bool is_ours(lane_mask mask, u32 start, u32 freed) {
    bool ours = (start & freed) != 0;
    for (lane_mask rest = mask; rest != 0; rest &= rest - 1) {
      u32 const other = lowest_bit(rest), its_start = simt::shuffle(mask, start, other);
      if (other < simt::lane_id() && its_start == start) ours = false;
    }
    return ours;
  }

  Table table_;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::halloc_parts
