// SPDX-License-Identifier: Apache-2.0
// How blocks up to a slab are handed out: to all lanes of a warp that ask for one class at once.
// The leader takes them from its row's slab; where that has none, the group goes on to a refill,
// then to the search. The lanes share what their leader claimed.
#pragma once

#include "../../../sync/lane_random.hpp"
#include "../../../sync/warp_aggregate.hpp"
#include "refill.hpp"
#include "search.hpp"

namespace warpheap::inline WARPHEAP_BACKEND::slab_bitmap_parts {

/// Serves requests for blocks of a size class. Stateless; `table` is the heap.
class block_service {
 public:
  WARPHEAP_DEVICE explicit block_service(slab_table const& table) : table_{table} {}

  /// A block of the class; nullptr if there is none. Any lanes, converged or not.
  WARPHEAP_DEVICE void* create(u32 size_class) const { return create(simt::active_mask(), size_class); }

  /// As create(), for all lanes of `active` at once, each with its own class.
  WARPHEAP_DEVICE void* create(u32 active, u32 size_class) const {
    return serve(active, group_by(active, group_key(size_class)), size_class);
  }

 private:
  /// Lanes that ask one heap for one class are served together; lanes that need a slab each, alone.
  /// The heap is part of the key, since lanes of a warp may call at one place with different heaps.
  WARPHEAP_DEVICE u64 group_key(u32 size_class) const {
    bool const alone = size_class + classes_of_one_block >= table_.geometry().classes();
    u32 const lane = alone ? simt::lane_id() + 1 : 0;
    // What is added is less than the metadata's bytes, so keys of two heaps differ.
    return reinterpret_cast<u64>(table_.metadata()) + (lane << 8 | size_class);
  }
  static constexpr u32 classes_of_one_block = 4;  // the last ones: more than half a slab

  struct quick_result {
    u32 where = 0;  ///< slab + 1; 0: not served; | scattered: the blocks are not in a row
    /// first block (scattered: of their word); if not served, the row's salt
    u32 first = 0;
    u64 bits = 0;           ///< the blocks from there; if not served, of the word at rest.place()
    slab_reservation rest;  ///< promised beyond these
    static constexpr u32 scattered = 1u << 31;
  };

  /// Blocks for the groups of `active`. All its lanes call: collectives of many masks would run
  /// one after the other. Rare cases are left out: 100 instructions take 32,768 warps 3 us.
  WARPHEAP_DEVICE void* serve(u32 active, lane_group const& group, u32 size_class) const {
    quick_result got{};
    if (group.leads) got = serve_quickly(size_class, group.size);
    // The leader's acquire is every lane's: the old owners' writes happen before our return.
    simt::sync_warp(active);
    u32 const where = simt::shuffle(active, got.where, group.leader);
    u32 const first = simt::shuffle(active, got.first, group.leader);
    u32 rank = group.rank;
    if (simt::ballot(active, where == 0 || (where & quick_result::scattered)) != 0) {
      u64 const bits = simt::shuffle(active, got.bits, group.leader);
      u32 const unserved = simt::ballot(active, where == 0);
      if (where == 0) return serve_slowly(table_, unserved, group.mask, size_class, got.first, got.rest, got.bits);
      rank = nth_bit(bits, rank);
    }
    return address((where & ~quick_result::scattered) - 1, size_class, first + rank);
  }

  WARPHEAP_DEVICE quick_result serve_quickly(u32 size_class, u32 wanted) const {
    u32 const salt = static_cast<u32>(simt::clock()) >> 4;
    u32 const entry = table_.hint_entry(size_class, salt);
    // relaxed: a hint; the reservation checks it.
    u32 const hinted = slab_hint{table_.hint(entry).load(order::relaxed)}.current();
    u64 const limits = table_.hint_limits(entry);
    u32 const slab = hinted - 1, capacity = static_cast<u32>(limits >> 32), soft = static_cast<u32>(limits);
    if (hinted == 0 || !slab_refill::goes_by_hint(wanted, capacity)) return {0, salt, 0, {}};
    slab_state const old = table_.promise(slab, wanted);
    u32 const now_used = old.used() + wanted;
    bool const reaches_soft = old.used() < soft && now_used >= soft;
    if (!old.serves(size_class) || now_used > (old.ever() < capacity ? capacity : soft) || reaches_soft)
      return {0, salt, old.word, {slab, wanted, slab_reservation::nowhere}};
    // While ever() is below the capacity, the next blocks were never used; later any word will do.
    u32 place = old.ever();
    u64 const in_order = low_mask(wanted);
    u64 bits = in_order << (place % 64);
    if (place + wanted > capacity || place % 64 + wanted > 64) {
      u32 const random = mix32(salt + simt::lanes_below());
      place = scale_below(random, (capacity + 63) / 64) * 64;
      u64 const free = ~table_.blocks(slab).load(place / 64) & slab_table::valid_mask(capacity, place / 64);
      // From a random bit on: the lowest free blocks are what all others take.
      bits = rotate_left(lowest_bits(rotate_left(free, random), wanted), 0 - random);
    }
    // acquire: pairs with the release in bitmap::release().
    u64 const ours = table_.blocks(slab).try_claim(place / 64, bits, order::acquire);
    u32 const word = place & ~63u, left = wanted - popcount(ours);
    if (left != 0) return {0, salt, ours, {slab, left, word}};
    u32 const shift = lowest_bit(ours);
    if (ours >> shift == in_order) return {hinted, word + shift, in_order, {}};
    return {hinted | quick_result::scattered, word, ours, {}};
  }

  /// The rest of serve(). All lanes of whole groups call; the last three are each leader's.
  WARPHEAP_COLD static void* serve_slowly(slab_table table, u32 active, u32 group_mask, u32 size_class, u32 row,
                                          slab_reservation reserved, u64 claimed) {
    block_service const self{table};
    slab_refill refill;
    if (group_of(group_mask).leads) {
      bool const was_promised = reserved.blocks() != 0 && reserved.place() == slab_reservation::nowhere;
      refill = was_promised ? slab_refill{row, reserved.slab(), {claimed}} : slab_refill{row};
      if (was_promised) claimed = 0, reserved = {};
    }
    WARPHEAP_NO_UNROLL
    for (;; claimed = 0) {
      WARPHEAP_NO_UNROLL
      while (claimed == 0 && (reserved.blocks() != 0 || !refill.has_ended())) {
        if (reserved.blocks() == 0 || refill.is_moving()) {
          slab_reservation const taken =
              refill.next(table.opaque(), warpheap::opaque(size_class), popcount(group_mask));
          if (taken.blocks() != 0) reserved = taken;
        }
        if (reserved.blocks() != 0 && !refill.is_moving())
          claimed = block_service{table.opaque()}.claim(reserved, warpheap::opaque(size_class));
      }
      refill.begin_again();
      shared_claim const mine = self.share(active, group_mask, size_class, claimed, reserved);
      u32 const seekers = simt::ballot(active, mine.is_none);
      if (mine.is_none) return search(table, seekers, group_mask, size_class);
      active = simt::ballot(active & ~seekers, mine.block == nullptr);
      if (mine.block != nullptr) return mine.block;
      group_mask &= active;
    }
  }

  /// The answer for groups whose refills have ended. All lanes of `active` call, whole groups.
  WARPHEAP_COLD static void* search(slab_table table, u32 active, u32 group_mask, u32 size_class) {
    block_service const self{table};
    u32 const random = scale_below(lane_random_bits(), table.geometry().slabs());
    slab_search search{simt::shuffle(active, random, group_of(group_mask).leader), group_of(group_mask).rank};
    slab_reservation reserved;
    WARPHEAP_NO_UNROLL
    for (;;) {
      lane_group const group = group_of(warpheap::opaque(group_mask));
      bool const is_none = group.leads && search.finds_none(table.opaque(), warpheap::opaque(size_class));
      if ((simt::ballot(active, is_none) >> group.leader) & 1) search.pass_round(table);
      u32 const mine = search.look(table.opaque(), warpheap::opaque(size_class), group.size);
      u32 const finders = simt::ballot(active, mine != slab_search::none) & group.mask;
      u32 const by_count = simt::ballot(active, mine != slab_search::none && search.is_hasty()) & group.mask;
      u32 const finder = lowest_bit(by_count != 0 ? by_count : finders != 0 ? finders : group.mask);
      u32 const slab = simt::shuffle(active, mine, finder);
      bool passes = by_count != 0;
      u64 claimed = 0;
      if (group.leads) {
        if (reserved.blocks() == 0 && finders != 0) {
          reserved = search.take(table.opaque(), warpheap::opaque(size_class), group.size, slab);
          passes = passes || reserved.blocks() != 0;
        }
        if (reserved.blocks() != 0)
          claimed = block_service{table.opaque()}.claim(reserved, warpheap::opaque(size_class));
      }
      u32 const passing = simt::ballot(active, passes), served = simt::ballot(active, claimed != 0);
      void* block = nullptr;
      if (served != 0) block = self.share(active, group_mask, size_class, claimed, reserved).block;
      if (((served >> group.leader) & 1) != 0) search.note_success();
      else if (finders == 0) search.end_round(group.rank);
      else if (finder == simt::lane_id() && ((passing >> group.leader) & 1) != 0) search.pass_slab(group.size);
      // I4: what any lane saw comes before what any lane looks at next.
      simt::sync_warp(active);
      bool const leaves = block != nullptr || search.has_ended();
      active = simt::ballot(active, !leaves);
      if (leaves) {
        if (block == nullptr && group.leads) table.add_failures(group.size, class_bytes(size_class));
        return block;
      }
      group_mask &= active;
    }
  }

  struct shared_claim {
    void* block;   ///< ours, if there are enough
    bool is_none;  ///< the leader has claimed none
  };

  /// The last ranks go first: the leader leads to the end, and a served lane holds no register.
  WARPHEAP_DEVICE shared_claim share(u32 active, u32 group_mask, u32 size_class, u64 claimed,
                                     slab_reservation reserved) const {
    // The leader's acquire is every lane's: the old owners' writes happen before our return.
    simt::sync_warp(active);
    lane_group const group = group_of(warpheap::opaque(group_mask));
    claimed = simt::shuffle(active, claimed, group.leader);
    u32 const from = simt::shuffle(active, reserved.slab(), group.leader);
    u32 const first = simt::shuffle(active, reserved.place(), group.leader);
    u32 const left = group.size - popcount(claimed);
    if (claimed == 0 || group.rank < left) return {nullptr, claimed == 0};
    return {block_service{table_.opaque()}.address(from, warpheap::opaque(size_class),
                                                   first + nth_bit(claimed, group.rank - left)),
            false};
  }

  /// Claims reserved blocks, all in one word, whose first block becomes the reservation's place. 0
  /// if each was seen taken in spite of the promise, which is then given back.
  WARPHEAP_DEVICE u64 claim(slab_reservation& reserved, u32 size_class) const {
    u32 const capacity = table_.geometry().capacity(size_class), words = (capacity + 63) / 64;
    u32 const slab = reserved.slab(), blocks = reserved.blocks(), place = reserved.place();
    u32 word = place / 64;
    u64 claimed = 0;
    if (reserved.is_new()) {
      u64 const wanted = low_mask(blocks) << (place % 64) & slab_table::valid_mask(capacity, word);
      // acquire: pairs with the release in bitmap::release().
      claimed = table_.blocks(slab).try_claim(word, wanted, order::acquire);
    }
    // Not from the next word on: others are to get its blocks in order.
    if (claimed == 0) word = scale_below(lane_random_bits(), words);
    WARPHEAP_NO_UNROLL
    for (u32 turn = 0; claimed == 0 && turn < words && place != slab_reservation::nowhere; ++turn) {
      word = word + 1 < words ? word + 1 : 0;
      claimed = table_.blocks(slab).claim(word, blocks, slab_table::valid_mask(capacity, word));
    }
    if (claimed == 0) table_.opaque().give_back(slab, blocks);
    reserved = {slab, claimed != 0 ? blocks - popcount(claimed) : 0, 64 * word};
    return claimed;
  }

  WARPHEAP_DEVICE void* address(u32 slab, u32 size_class, u32 index) const {
    return table_.data(slab) + u64{index} * class_bytes(size_class);
  }

  slab_table table_;
};

}  // namespace warpheap::inline WARPHEAP_BACKEND::slab_bitmap_parts
