// SPDX-License-Identifier: Apache-2.0
// What block a pointer names, and how it is given back.
//
// A free reads the role of the slab by a load, which may be old if the pointer came by a shuffle or
// a relaxed mailbox. So what finds nothing to clear is looked at again, by read-modify-writes.
//
//   F1  a free counts as foreign or double only after an attempt by the slab's newest word.
//   F2  lanes that act as one have read one role: what holds for the leader's holds for all.
//   F3  a free that cleared the bit of another class learns it as it subtracts. It frees the block
//       that starts where it points, if one does, and sets that bit again unless a thread has
//       claimed it.
//   F4  the size of a block is told by the newest role, which says yes and no rightly to an owner:
//       it was stored before the slab promised a block of its class, and stays while one lives.
#pragma once

#include "../../../sync/warp_aggregate.hpp"
#include "runs.hpp"

namespace warpheap::inline WARPHEAP_BACKEND::slab_bitmap_parts {

/// Finds and frees the blocks of a heap. Stateless; `table` is the heap.
class block_release {
 public:
  WARPHEAP_DEVICE explicit block_release(slab_table const& table) : table_{table} {}

  /// Frees the block at `memory`; counts and ignores what is none. Any lanes, converged or not.
  WARPHEAP_DEVICE void operator()(void const* memory) const {
    u64 const offset = offset_of(memory);
    slab_role const role = seen_role(offset);
    block_address const at = locate(offset, role);
    outcome what = missed;
    if (at.kind == block_address::block) {
      u32 const active = simt::active_mask();
      // Mostly a whole warp: with a constant mask the compiler need not sort lanes by mask.
      shared_release const shared =
          active == full_mask ? release_together(full_mask, at, role) : release_together(active, at, role);
      what = finish(active, memory, at, role, shared);
    }
    if (what != freed) look_again(table_, memory, role, what);
  }

  /// Bytes of the live block at `memory`; 0 if it is none.
  WARPHEAP_DEVICE size_t usable_size(void const* memory) const {
    u64 const offset = offset_of(memory);
    if (offset >= table_.geometry().pool_bytes()) return 0;
    slab_role const role = table_.newest_role(slab_of(offset));  // F4
    block_address const at = locate(offset, role);
    if (at.kind == block_address::run) return u64{role.length()} << table_.geometry().slab_log2();
    if (at.kind == block_address::none) return 0;
    // relaxed: what gave the owner its block orders this.
    u64 const taken = table_.blocks(at.slab).load_newest(at.index / 64, order::relaxed);
    return (taken >> (at.index % 64)) & 1 ? class_bytes(role.size_class()) : 0;
  }

 private:
  using count = slab_table::count;

  /// What starts at an address, by the role of its slab; says nothing about whether it is taken.
  struct block_address {
    enum kind_of : u32 { none, block, run } kind;
    u32 slab;
    u32 index;  ///< of the block in its slab
  };

  WARPHEAP_DEVICE u64 offset_of(void const* memory) const {
    return reinterpret_cast<u64>(memory) - reinterpret_cast<u64>(table_.pool());
  }
  WARPHEAP_DEVICE u32 slab_of(u64 offset) const { return static_cast<u32>(offset >> table_.geometry().slab_log2()); }

  WARPHEAP_DEVICE slab_role seen_role(u64 offset) const {
    if (offset >= table_.geometry().pool_bytes()) return {};
    // relaxed: what handed the block to us ordered this, or we look again (F1).
    return {table_.role(slab_of(offset)).load(order::relaxed)};
  }

  WARPHEAP_DEVICE block_address locate(u64 offset, slab_role role) const {
    if (role.is_none()) return {};
    u32 const slab = slab_of(offset);
    u32 const inside = static_cast<u32>(offset) & (table_.geometry().slab_bytes() - 1);
    bool const starts_run = inside == 0 && !role.is_absent();
    if (role.is_run()) return {starts_run ? block_address::run : block_address::none, slab, 0};
    u32 const index = role.index_at(inside);
    // A start beyond the last block is in the tail: its bit is never set.
    return {index != slab_role::no_block ? block_address::block : block_address::none, slab, index};
  }

  /// What came of one lane's free.
  enum outcome : u32 {
    freed,
    missed,  ///< nothing was there to clear
    /// Cleared the bit of another class's block: the slab has changed its class since the look.
    /// Block i of one class starts elsewhere than block i of another, but for block 0.
    misled
  };

  struct shared_release {
    u64 cleared;     ///< the leader's: bits that were set in the word of its block
    slab_state now;  ///< the leader's: the slab's word after the subtraction
    u32 mask;        ///< the group
    bool suffices;   ///< in every group of the calling lanes: each block was taken and is free now
  };

  /// Clears and subtracts the bits of these lanes, by one operation for each bitmap word.
  WARPHEAP_DEVICE shared_release release_together(u32 active, block_address const& at, slab_role role) const {
    u32 const word = at.slab * table_.geometry().words() + at.index / 64;
    // Lanes may differ in heap and role (F2): the class, 7 bits, stays clear of address bits.
    u64 const key = (reinterpret_cast<u64>(table_.metadata()) + word) ^ (u64{role.word} << 57);
    lane_group const group = group_by(active, key);
    u32 const place = at.index % 64;
    // Blocks that came in a row, by rank, often go in a row.
    u32 const start = simt::shuffle(active, place, group.leader);
    u64 bits = low_mask(group.size) << start;
    if (simt::ballot(active, place != start + group.rank) != 0) bits = union_of_groups(active, group, u64{1} << place);
    // The other lanes' last writes to their blocks come before the leader's release.
    simt::sync_warp(active);
    shared_release shared{0, {}, group.mask, false};
    if (group.leads) {
      shared.cleared = table_.blocks(at.slab).release(at.index / 64, bits);
      WARPHEAP_POINT("free.before_subtract");
      if (shared.cleared != 0) shared.now = table_.subtract(at.slab, popcount(shared.cleared), 0);
    }
    bool const in_vain = popcount(shared.cleared) != group.size || shared.now.size_class() != role.size_class();
    shared.suffices = simt::ballot(active, group.leads && in_vain) == 0;
    return shared;
  }

  /// Settles what the lanes of `active` did together. Returns to each what came of its free.
  WARPHEAP_DEVICE outcome finish(u32 active, void const* memory, block_address const& at, slab_role role,
                                 shared_release const& shared) const {
    lane_group const group = group_of(shared.mask);
    outcome mine = freed;
    if (!shared.suffices) {
      bool const is_strange = shared.cleared != 0 && shared.now.size_class() != role.size_class();
      u32 const strange = simt::ballot(active, group.leads && is_strange);
      u64 const cleared = simt::shuffle(active, shared.cleared, group.leader);
      // Of lanes that freed one block together, one did.
      u32 const same = simt::match_any(active, reinterpret_cast<u64>(memory)) & group.mask;
      if (!((cleared >> (at.index % 64)) & 1) || !group_of(same).leads) mine = missed;
      else if (((strange >> group.leader) & 1) && at.index != 0) mine = misled;
    }
    if (group.leads && !shared.now.is_settled(role.size_class())) table_.settle(at.slab, shared.now);
    // No lane returns before the blocks are back, or it could ask for them and be refused.
    simt::sync_warp(active);
    return mine;
  }

  /// After a look by role `tried` freed nothing: a run, a misuse or an old look. Any lane alone.
  WARPHEAP_COLD static void look_again(slab_table table, void const* memory, slab_role tried, outcome came_of_it) {
    block_release const self{table};
    u64 const offset = self.offset_of(memory);
    if (offset >= table.geometry().pool_bytes()) return table.add_count(count::foreign_frees, 1);
    u32 const slab = self.slab_of(offset);
    bool is_start = self.locate(offset, tried).kind != block_address::none;
    slab_role role = is_start && tried.is_run() ? tried : table.newest_role(slab);
    WARPHEAP_NO_UNROLL
    while (self.locate(offset, role).kind == block_address::run) {
      if (slab_runs::try_destroy(table, slab, role)) return;
      is_start = true;
    }
    self.release_newest(offset, tried, came_of_it == misled, is_start);
  }

  /// Frees the block at `offset` by the newest word, if its class is not as `tried` (F1), and gives
  /// back the one taken for it (F3); else counts a misuse. `is_start`: an older word had one here.
  WARPHEAP_DEVICE void release_newest(u64 offset, slab_role tried, bool is_misled, bool is_start) const {
    u32 const slab = slab_of(offset), inside = static_cast<u32>(offset) & (table_.geometry().slab_bytes() - 1);
    slab_state const now = table_.promise(slab, 1);  // held, it keeps the class (D3)
    u32 released = 0, promised = 1;
    if (now.is_live()) {
      u32 const index = block_index(now.size_class(), inside);
      bool const starts = index * class_bytes(now.size_class()) == inside;
      bool const is_of_another = !tried.is_of(now.size_class());
      is_start = is_start || starts;
      if (starts && is_of_another) released = popcount(release_bit(slab, index));
      // Our promise becomes the other block's: there is room, since ours is not subtracted yet.
      u32 const other = tried.index_at(inside);
      if (is_misled && is_of_another && other < table_.geometry().capacity(now.size_class()))
        promised -= popcount(restore_bit(slab, other));
    }
    if (released == 0) table_.add_count(is_start ? count::double_frees : count::foreign_frees, 1);
    table_.settle(slab, table_.subtract(slab, released, promised));
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

}  // namespace warpheap::inline WARPHEAP_BACKEND::slab_bitmap_parts
