// How blocks of chunks are known by their address, and given back: those of a warp that lie in one word by one operation.
#pragma once

#include "../../../sync/warp_aggregate.hpp"
#include "chunk_claim.hpp"

namespace warpheap::inline WARPHEAP_BACKEND::chunks {

/// Where a pointer leads in a slab.
struct block_address {
  u32 slab;
  u32 word;     ///< of the slab
  u32 chunks;   ///< of the word: the block's; 0 if no live block starts there
  bool starts;  ///< some block may start there
};

/// Finds and frees blocks in the slabs of a heap. Stateless; `table` is the heap.
template <class Table>
class block_release {
 public:
  WARPHEAP_DEVICE explicit block_release(Table const& table) : table_{table} {}

  /// What block starts at an offset, in a slab with chunks of a kind.
  WARPHEAP_DEVICE block_address locate(u32 slab, u64 offset, u32 kind) const {
    u32 const inside = static_cast<u32>(offset & low_mask(table_.geometry().slab_log2()));
    u32 const unit = inside >> (4 + kind / 2 * 4), chunk = kind % 2 ? third(inside >> (3 + kind / 2 * 4)) : unit;
    if (chunk * chunk_bytes(kind) != inside || chunk >= table_.geometry().capacity(kind)) return {};
    u32 const in_word = chunk % word_chunks, at = chunk / word_chunks;
    // relaxed: of a block that is ours the bits are as they were when we got it.
    u64 const word = table_.word(slab, at).load(order::relaxed);
    if (!starts_block(word, in_word)) return {};
    bool const live = (word >> in_word & 1) != 0;
    return {slab, at, live ? Table::steps::chunks_at(word, in_word) : 0, true};
  }

  /// Gives back a live block, together with those of the lanes that are here. What others freed at the same moment is counted.
  WARPHEAP_DEVICE void destroy(block_address const& at) const {
    u32 const company = simt::active_mask();
    u64 const word =
        reinterpret_cast<u64>(table_.metadata()) + u64{at.slab} * table_.geometry().record_bytes() + 8 * at.word;
    lane_group const group = group_by(company, word);
    u32 freed = union_of_groups(company, group, at.chunks);
    u32 const asked = chunks_asked(company, group, popcount(at.chunks));
    // The leader's release covers only what this ordered: the other lanes' last writes to their blocks.
    simt::sync_warp(company);
    u32 cleared = 0;
    if (group.leads) cleared = release(at, freed);
    // Nobody returns before the blocks are back: a lane that asks next, of a heap full but for them, must be served.
    simt::sync_warp(company);
    u32 const missing = simt::shuffle(company, asked - popcount(cleared), group.leader);
    if (missing != 0) count_double(table_, group.mask, at.chunks, simt::shuffle(group.mask, cleared, group.leader));
  }

 private:
  /// eights / 3: chunks of 24 bytes in so many eights.
  WARPHEAP_DEVICE static u32 third(u32 eights) {
    constexpr fast_divider by_three{3};
    return by_three.quotient(eights);
  }

  /// Chunks of the lanes of each group in `company`, those of two lanes counted twice.
  WARPHEAP_DEVICE static u32 chunks_asked(u32 company, lane_group const& group, u32 mine) {
    u32 all = 0;
    // Three bits and the eighth: a block has 1, 2, 4 or 8 chunks.
    for (u32 bit = 0; bit < 4; ++bit)
      all += popcount(simt::ballot(company, (mine >> bit & 1) != 0) & group.mask) << bit;
    return all;
  }

  /// Counts the lanes whose block was not there, or was a lower lane's too. All lanes of `mask` call.
  WARPHEAP_COLD static void count_double(Table table, u32 mask, u32 mine, u32 cleared) {
    u32 taken = mine & ~cleared;
    for (u32 rest = mask; rest != 0; rest &= rest - 1) {
      u32 const other = lowest_bit(rest), theirs = simt::shuffle(mask, mine, other);
      if (other < simt::lane_id()) taken |= theirs & mine;
    }
    if (taken != 0) table.add_count(count::double_frees, 1);
  }

  /// Gives chunks of one word back; returns those that were taken. Any lane alone.
  WARPHEAP_DEVICE u32 release(block_address const& at, u32 freed) const {
    u64 const both = u64{freed} << 32 | freed;
    if (!Table::steps::clears_first) table_.subtract(at.slab, popcount(freed)), Table::steps::linger_in_free();
    // release: what the owners did to the blocks happens before the next owners' use; pairs with the acquire in take_blocks().
    u32 const cleared = freed & taken(table_.word(at.slab, at.word).fetch_and(~both, order::release));
    if (Table::steps::clears_first) Table::steps::linger_in_free();
    // A1: bits, not requests, own chunks: what was really cleared is subtracted.
    if (Table::steps::clears_first && cleared != 0) table_.subtract(at.slab, popcount(cleared));
    return cleared;
  }

  Table table_;
};

}  // namespace warpheap::inline WARPHEAP_BACKEND::chunks
