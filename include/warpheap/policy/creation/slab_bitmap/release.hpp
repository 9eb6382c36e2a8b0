// SPDX-License-Identifier: Apache-2.0
// What block a pointer names, and how it is given back.
//
// The header that a free loads may be old. What finds nothing to clear by it is looked at again.
//
//   slab.F1  a free counts as foreign or double only after an attempt by the slab's newest word.
//   slab.F2  lanes that act as one have read one header: what holds for the leader's holds for all.
//   slab.F3  a free that cleared the bit of another class learns it as it subtracts. It frees the
//       block that starts where it points, if one does, and sets that bit again unless a thread has
//       claimed it.
//   slab.F4  the size of a block is told by the newest header, which says yes and no rightly to an
//       owner: it was stored before a block of its class was reserved, and stays while one
//       lives.
#pragma once

#include "../../../sync/warp_aggregate.hpp"
#include "runs.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace slab_bitmap_parts {

/// Finds and frees the blocks of a heap. Stateless; `table` is the heap.
class block_release {
 public:
  WARPHEAP_DEVICE explicit block_release(slab_table const& table) : table_{table} {}

  /// Frees the block at `memory`, not nullptr; counts and ignores what is none. Any lanes,
  /// converged or not. A full warp that frees blocks in a row goes first.
  WARPHEAP_DEVICE void operator()(void const* memory) const {
    u64 const offset = offset_of(memory);
    bool const is_outside = offset >= table_.geometry().pool_bytes();
    u32 const slab = opaque(is_outside ? 0 : slab_of(offset));
    // relaxed: what handed the block to us ordered this, or we look again (slab.F1).
    slab_header const header{table_.header(slab).load(order::relaxed)};
    u32 const index = header.index_of(inside(offset));
    outcome what = missed;
    if (!is_outside && header.block_bytes() > 0 && header.starts(index, inside(offset)))
      what = release_block(memory, slab, index, header);
    if (what != freed) look_again(table_, memory, header.low(), what);
  }

  /// Bytes of the live block at `memory`; 0 if it is none.
  WARPHEAP_DEVICE size_t usable_size(void const* memory) const {
    u64 const offset = offset_of(memory);
    if (offset >= table_.geometry().pool_bytes()) return 0;
    slab_header const header = table_.newest_header(slab_of(offset));  // slab.F4
    block_address const at = locate(offset, header);
    if (at.kind == block_address::run) return u64{header.length()} << table_.geometry().slab_log2();
    if (at.kind == block_address::none) return 0;
    // relaxed: what gave the owner its block orders this.
    u64 const taken = table_.blocks(at.slab).load_newest(at.index / 64, order::relaxed);
    return (taken >> (at.index % 64)) & 1 ? class_bytes(header.size_class()) : 0;
  }

 private:
  using count = slab_table::count;

  /// What starts at an address, by the header of its slab; says nothing about whether it is taken.
  struct block_address {
    enum kind_of : u32 { none, block, run } kind;
    u32 slab;
    u32 index;  ///< of the block in its slab
  };

  WARPHEAP_DEVICE u64 offset_of(void const* memory) const {
    return reinterpret_cast<u64>(memory) - reinterpret_cast<u64>(table_.pool());
  }
  WARPHEAP_DEVICE u32 slab_of(u64 offset) const { return static_cast<u32>(offset >> table_.geometry().slab_log2()); }

  WARPHEAP_DEVICE u32 inside(u64 offset) const {
    return static_cast<u32>(offset) & (table_.geometry().slab_bytes() - 1);
  }

  WARPHEAP_DEVICE block_address locate(u64 offset, slab_header header) const {
    if (header.is_none()) return {};
    u32 const slab = slab_of(offset);
    bool const starts_run = inside(offset) == 0 && !header.is_absent();
    if (header.is_run()) return {starts_run ? block_address::run : block_address::none, slab, 0};
    u32 const index = header.index_at(inside(offset));
    // A start beyond the last block is in the tail: its bit is never set, so a free is double.
    return {index != slab_header::no_block ? block_address::block : block_address::none, slab, index};
  }

  /// The result of one lane's free.
  enum outcome : u32 {
    freed,
    missed,  ///< nothing was there to clear
    /// Cleared the bit of another class's block: the slab has changed its class since the look.
    /// Block i of one class starts elsewhere than block i of another, but for block 0.
    misled
  };

  /// Frees a block that starts at `memory` by `header`.
  WARPHEAP_DEVICE outcome release_block(void const* memory, u32 slab, u32 index, slab_header header) const {
    lane_mask const active = simt::active_mask();
    u32 const lane = simt::lane_id();
    group_release mine{freed, {}};
    if (active != full_mask || !are_in_a_row(memory, index, header)) {
      mine = release_groups(table_, active, slab, index, header.size_class());
    } else {
      // The other lanes' last writes to their blocks come before the leader's release.
      simt::sync_warp(full_mask);
      row_release row{opaque(0u), opaque(lane_mask{0})};
      if (lane == 0) row = release_row(slab, index, header, row, mine.to_fix_up);
      simt::sync_warp(full_mask);  // as below
      u32 const trouble = simt::shuffle(full_mask, row.trouble, 0);
      if (trouble == 0) return freed;
      if ((simt::shuffle(full_mask, row.lost, 0) >> lane) & 1) mine.what = missed;
      else if (trouble == 2 && inside(offset_of(memory)) != 0) mine.what = misled;
    }
    if (mine.to_fix_up.word != 0) table_.fix_up(slab_of(offset_of(memory)), mine.to_fix_up);
    // No lane returns before the blocks are back, or it could ask for them and be refused.
    simt::sync_warp(active);
    return mine.what;
  }

  /// Whether the blocks of a full warp are in a row, in one bitmap word of one heap.
  WARPHEAP_DEVICE bool are_in_a_row(void const* memory, u32 index, slab_header header) const {
    u32 const lane = simt::lane_id();
    // A vote: with match_any frees of mixed sizes took 28 us for 19, with as many instructions.
    u64 const first = simt::shuffle(full_mask, reinterpret_cast<u64>(memory), 0);
    u32 const bytes = simt::shuffle(full_mask, header.low(), 0);  // slab.F2
    bool const is_astray = reinterpret_cast<u64>(memory) != first + u64{lane} * bytes || header.low() != bytes ||
                           index % 64 - lane > 64 - warp_lanes;
    // Astray is also where the next slab goes on in the row. Heaps are compared: one may lie in a
    // block of another.
    return simt::ballot(full_mask, is_astray) == 0 &&
           simt::match_any(full_mask, reinterpret_cast<u64>(table_.metadata())) == full_mask;
  }

  /// What lane 0 found as it freed blocks in a row, one for each lane.
  struct row_release {
    u32 trouble;     ///< 0: none; 2: the slab has changed its class; 1: any other
    lane_mask lost;  ///< lanes whose block was not taken
  };

  /// `good` is what it returns if there is no trouble. to_fix_up: as in group_release.
  WARPHEAP_DEVICE row_release release_row(u32 slab, u32 index, slab_header header, row_release good,
                                          slab_state& to_fix_up) const {
    u64 const bits = u64{full_mask} << (index % 64);
    u64 const missing = bits & ~table_.blocks(slab).release(index / 64, bits);
    WARPHEAP_POINT("free.before_subtract");
    lane_mask const lost = static_cast<lane_mask>(missing >> (index % 64));
    if (lost == full_mask) return {1, lost};
    slab_state const now = table_.subtract(slab, popcount(~lost), 0);
    if (lost == 0 && now.is_in_order(header.size_class())) return good;
    to_fix_up = now;
    return {now.size_class() != header.size_class() ? 2u : 1u, lost};
  }

  struct group_release {
    outcome what;
    slab_state to_fix_up;  ///< the leader's: the slab's word, if it is to be fixed up; else 0
  };

  /// Frees blocks of lanes that are not all in a row, but for the fix-up.
  WARPHEAP_DEVICE static group_release release_groups(slab_table table, lane_mask active, u32 slab, u32 index,
                                                      u32 size_class) {
    block_release const self{table};
    // Mostly a whole warp: with a constant mask the compiler need not sort lanes by mask.
    shared_release const shared = active == full_mask ? self.release_together(full_mask, slab, index, size_class)
                                                      : self.release_together(active, slab, index, size_class);
    bool const needs_fix_up = shared.cleared != 0 && !shared.now.is_in_order(size_class);
    return {outcome_of(active, index, size_class, shared), needs_fix_up ? shared.now : slab_state{}};
  }

  struct shared_release {
    u64 cleared;     ///< the leader's: bits that were set in the word of its block
    slab_state now;  ///< the leader's: the slab's word after the subtraction
    lane_mask mask;  ///< the group
    bool suffices;   ///< in every group of the calling lanes: each block was taken and is free now
  };

  /// Clears and subtracts the bits of these lanes, by one operation for each bitmap word.
  WARPHEAP_DEVICE shared_release release_together(lane_mask active, u32 slab, u32 index, u32 size_class) const {
    u64 const word = u64{slab} * table_.geometry().words() + index / 64;
    // Lanes may differ in heap and header (slab.F2). The sum lies in the heap's metadata, so it
    // tells heap and word. The class, 6 bits, stays clear of addresses.
    u64 const key = (reinterpret_cast<u64>(table_.metadata()) + word) ^ (u64{size_class} << 57);
    lane_group const group = group_by(active, key);
    u32 const place = index % 64;
    // Blocks that came in a row, by rank, often go in a row.
    u32 const start = simt::shuffle(active, place, group.leader);
    u64 bits = low_mask(group.size) << start;
    if (simt::ballot(active, place != start + group.rank) != 0) bits = union_of_groups(active, group, u64{1} << place);
    // The other lanes' last writes to their blocks come before the leader's release.
    simt::sync_warp(active);
    shared_release shared{0, {}, group.mask, false};
    if (group.leads) {
      shared.cleared = table_.blocks(slab).release(index / 64, bits);
      WARPHEAP_POINT("free.before_subtract");
      if (shared.cleared != 0) shared.now = table_.subtract(slab, popcount(shared.cleared), 0);
    }
    bool const in_vain = popcount(shared.cleared) != group.size || shared.now.size_class() != size_class;
    shared.suffices = simt::ballot(active, group.leads && in_vain) == 0;
    return shared;
  }

  /// The result of each lane's free, when the lanes of `active` free together.
  WARPHEAP_DEVICE static outcome outcome_of(lane_mask active, u32 index, u32 size_class, shared_release const& shared) {
    lane_group const group = group_of(shared.mask);
    outcome mine = freed;
    if (!shared.suffices) {
      bool const is_strange = shared.cleared != 0 && shared.now.size_class() != size_class;
      lane_mask const strange = simt::ballot(active, group.leads && is_strange);
      u64 const cleared = simt::shuffle(active, shared.cleared, group.leader);
      // Of lanes that freed one block together, one did.
      lane_mask const same = simt::match_any(active, index) & group.mask;
      if (!((cleared >> (index % 64)) & 1) || !group_of(same).leads) mine = missed;
      else if (((strange >> group.leader) & 1) && index != 0) mine = misled;
    }
    return mine;
  }

  /// After a look by header `tried` freed nothing: a run, a misuse or an old look. Any lane alone.
  /// Half of a header is passed, since the caller keeps it all through the free.
  WARPHEAP_COLD static void look_again(slab_table table, void const* memory, u32 tried_low, outcome came_of_it) {
    slab_header const tried = slab_header::of_low(tried_low);
    block_release const self{table};
    u64 const offset = self.offset_of(memory);
    if (offset >= table.geometry().pool_bytes()) return table.add_count(count::foreign_frees, 1);
    u32 const slab = self.slab_of(offset);
    bool is_start = self.locate(offset, tried).kind != block_address::none;
    slab_header header = is_start && tried.is_run() ? tried : table.newest_header(slab);
    WARPHEAP_NO_UNROLL
    while (self.locate(offset, header).kind == block_address::run) {
      if (slab_runs::try_destroy(table, slab, header)) return;
      is_start = true;
    }
    self.release_newest(offset, tried, came_of_it == misled, is_start);
  }

  /// Frees the block at `offset` by the newest word, if its class is not as `tried` (slab.F1), and
  /// restores the one taken for it (slab.F3); else counts a misuse. `is_start`: an older word had
  /// one here.
  WARPHEAP_DEVICE void release_newest(u64 offset, slab_header tried, bool is_misled, bool is_start) const {
    u32 const slab = slab_of(offset), inside = static_cast<u32>(offset) & (table_.geometry().slab_bytes() - 1);
    slab_state const now = table_.reserve(slab, 1);  // held, it keeps the class (slab.D3)
    u32 released = 0, reserved = 1;
    if (now.is_live()) {
      u32 const index = block_index(now.size_class(), inside);
      bool const starts = index * class_bytes(now.size_class()) == inside;
      bool const is_of_another = !tried.is_of(now.size_class());
      is_start = is_start || starts;
      if (starts && is_of_another) released = popcount(release_bit(slab, index));
      // Our reservation becomes the other block's: there is room, since ours is not subtracted yet.
      u32 const other = tried.index_at(inside);
      if (is_misled && is_of_another && other < table_.geometry().capacity(now.size_class()))
        reserved -= popcount(restore_bit(slab, other));
    }
    if (released == 0) table_.add_count(is_start ? count::double_frees : count::foreign_frees, 1);
    table_.fix_up(slab, table_.subtract(slab, released, reserved));
  }

  WARPHEAP_DEVICE u64 release_bit(u32 slab, u32 index) const {
    return table_.blocks(slab).release(index / 64, u64{1} << (index % 64));
  }
  WARPHEAP_DEVICE u64 restore_bit(u32 slab, u32 index) const {
    // relaxed: the block is another thread's.
    return table_.blocks(slab).try_claim(index / 64, u64{1} << (index % 64), order::relaxed);
  }

  slab_table table_;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::slab_bitmap_parts
