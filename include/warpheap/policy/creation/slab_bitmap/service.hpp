// SPDX-License-Identifier: Apache-2.0
// How blocks up to a slab are handed out: to all lanes of a warp that ask for one class at once.
// The leader takes them from its cache's active slab; where that has none, the group goes on to a
// refill, then to the scan. The lanes share what their leader claimed.
#pragma once

#include "../../../sync/lane_random.hpp"
#include "../../../sync/warp_aggregate.hpp"
#include "refill.hpp"
#include "scan.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace slab_bitmap_parts {

/// Serves requests for blocks of a size class. Stateless; `table` is the heap.
class block_service {
 public:
  WARPHEAP_DEVICE explicit block_service(slab_table const& table) : table_{table} {}

  /// Blocks of `block_bytes` bytes for all lanes of `active` at once, each of its own class;
  /// nullptr if there is none. A full warp that asks one heap for one class goes first: 100
  /// instructions take 32,768 warps 3 us.
  WARPHEAP_DEVICE void* create(lane_mask active, u32 size_class, u32 block_bytes) const {
    // Lanes that ask one heap for one class. The heap is part of the key, since lanes of a warp may
    // call at one place with different heaps; metadata lie at multiples of 4 KiB.
    lane_mask const alike = simt::match_any(active, reinterpret_cast<u64>(table_.metadata()) | size_class);
    u32 const salt = static_cast<u32>(simt::clock()) >> 4;  // picks the cache
    u32 const lane = opaque(simt::lane_id());
    u64 const none = opaque(attempt::unserved);  // computed once
    attempt got{none, 0};
    if (alike == full_mask) {
      if (lane == 0) got = claim_active<true>(size_class, block_bytes, warp_lanes, salt, none);
      // The leader's acquire is every lane's: the old owners' writes happen before our return.
      simt::sync_warp(full_mask);
      got.word = simt::shuffle(full_mask, got.word, 0);
      if (attempt::is_address(got.word)) return block_from(got.word, block_bytes, lane);
    }
    return serve_groups(table_, active, alike, size_class, block_bytes, got, salt);
  }

 private:
  /// What a leader has got for its group on the quick path.
  ///
  ///   word                                  bits
  ///   address of the first block            0: the blocks are in a row
  ///   address of bit 0 of `bits`            the blocks, of one word
  ///   unserved                              0: nothing is reserved
  ///   unserved | the rest's reservation     blocks claimed, of the word at its place
  ///   unserved | reservation at `nowhere`   the slab's descriptor before it; for the refill
  ///   waits    | reservation at `nowhere`   the same; to be claimed at random
  struct attempt {
    u64 word, bits;

    static constexpr u64 unserved = u64{1} << 63, waits = u64{3} << 62;
    WARPHEAP_DEVICE static bool is_address(u64 word) { return static_cast<i64>(word) >= 0; }
    WARPHEAP_DEVICE static attempt reserved(u64 kind, u32 slab, u32 blocks, u32 place, u64 bits) {
      return {kind | slab_reservation{slab, blocks, place}.word(), bits};
    }
    WARPHEAP_DEVICE slab_reservation rest() const { return slab_reservation{word & ~waits}; }
  };

  /// Reserves `wanted` blocks of the cache's active slab, and claims them: those from the bump
  /// cursor on if they are in one word; else some at a random place, with which a whole warp waits.
  /// `none` is what its word is if there is no reservation.
  template <bool IsWarp>
  WARPHEAP_DEVICE attempt claim_active(u32 size_class, u32 block_bytes, u32 wanted, u32 salt, u64 none) const {
    u32 const entry = table_.cache_entry(size_class, salt);
    // relaxed: a hint; the reservation checks it.
    u32 const active = sm_cache_entry{table_.cached(entry).load(order::relaxed)}.active();
    u64 const limits = table_.cached_limits(entry);
    u32 const slab = active - 1, capacity = static_cast<u32>(limits >> 32), high = static_cast<u32>(limits);
    if (active == 0 || !slab_refill::uses_cache(wanted, capacity)) return {none, 0};
    slab_state const old = table_.reserve(slab, wanted);
    bool const reaches_high = high - 1 - old.used() < wanted;
    bool const is_vain = !old.serves(size_class) || old.used() > capacity - wanted || reaches_high;
    word_bits next{old.bump(), low_mask(wanted) << (old.bump() % 64)};
    bool const is_ordered = next.place <= capacity - wanted && next.place % 64 <= 64 - wanted;
    // Above the high watermark blocks are for the bump cursor alone.
    bool const fails = is_vain || (next.place >= capacity && old.used() >= high);
    if (IsWarp ? is_vain | !is_ordered : fails)
      return attempt::reserved(fails ? attempt::unserved : attempt::waits, slab, wanted, slab_reservation::nowhere,
                               old.word);
    if (!IsWarp && !is_ordered) next = free_bits(slab, capacity, wanted, salt);
    // acquire: pairs with the release in bitmap::release().
    u64 const lost = table_.blocks(slab).claim_others(next.place / 64, next.bits, order::acquire);
    if (is_ordered && static_cast<u32>(lost | lost >> 32) == 0) return in_a_row(slab, block_bytes, next.place);
    return claimed(slab, block_bytes, wanted, {next.place & ~63u, next.bits ^ lost});
  }

  /// Claims what is reserved in a word at a random place.
  WARPHEAP_DEVICE attempt claim_at_random(u32 size_class, u32 block_bytes, slab_reservation reserved, u32 salt) const {
    u32 const slab = reserved.slab(), wanted = reserved.blocks();
    word_bits next = free_bits(slab, table_.geometry().capacity(size_class), wanted, salt);
    // acquire: pairs with the release in bitmap::release().
    next.bits = table_.blocks(slab).try_claim(next.place / 64, next.bits, order::acquire);
    return claimed(slab, block_bytes, wanted, next);
  }

  /// Blocks of one bitmap word, which block `place` is in.
  struct word_bits {
    u32 place;
    u64 bits;
  };

  /// Up to `wanted` blocks of a word at random that were free.
  WARPHEAP_DEVICE word_bits free_bits(u32 slab, u32 capacity, u32 wanted, u32 salt) const {
    u32 const random = mix32(salt + static_cast<u32>(u64{simt::lanes_below()})),
              word = scale_below(random, (capacity + 63) / 64);
    u64 const free = ~table_.blocks(slab).load(word) & slab_table::valid_mask(capacity, word);
    // From a random bit on: the lowest free blocks are what all others take.
    return {word * 64, rotate_left(lowest_bits(rotate_left(free, random), wanted), 0 - random)};
  }

  WARPHEAP_DEVICE attempt in_a_row(u32 slab, u32 block_bytes, u32 first) const {
    return {reinterpret_cast<u64>(table_.data(slab)) + u64{first} * block_bytes, 0};
  }

  /// The result of claiming some of `wanted` blocks. Their word begins with block `ours.place`.
  WARPHEAP_DEVICE attempt claimed(u32 slab, u32 block_bytes, u32 wanted, word_bits ours) const {
    u32 const left = wanted - popcount(ours.bits);
    if (left != 0) return attempt::reserved(attempt::unserved, slab, left, ours.place, ours.bits);
    u32 const shift = lowest_bit(ours.bits);
    if (ours.bits >> shift == low_mask(wanted)) return in_a_row(slab, block_bytes, ours.place + shift);
    return {in_a_row(slab, block_bytes, ours.place).word, ours.bits};
  }

  /// Blocks for lanes in groups of those that are `alike`. All lanes of `active` call: collectives
  /// of many masks would run one after the other. got: what a full warp has got so far: all lanes
  /// have the leader's word, and the leader its bits.
  WARPHEAP_DEVICE static void* serve_groups(slab_table table, lane_mask active, lane_mask alike, u32 size_class,
                                            u32 block_bytes, attempt got, u32 salt) {
    block_service const self{table};
    // Lanes that need a slab each go alone.
    bool const alone = 2 * block_bytes > table.geometry().slab_bytes();
    lane_group const group = group_of(alone ? lane_bit(simt::lane_id()) : alike);
    shared_attempt shared{got.word, 0, full_mask};
    if (!group.leads) got = {attempt::unserved, 0};
    if (alike != full_mask || shared.first >= attempt::waits) {
      if (group.leads) {
        if (alike == full_mask) got = self.claim_at_random(size_class, block_bytes, got.rest(), salt);
        else got = self.claim_active<false>(size_class, block_bytes, group.size, salt, attempt::unserved);
      }
      // Mostly a whole warp: with a constant mask the compiler need not sort lanes by mask.
      shared = group.mask == full_mask ? share_attempt(full_mask, group, got) : share_attempt(active, group, got);
    }
    if (!attempt::is_address(shared.first))
      return serve_slowly(table, shared.unserved, group.mask, size_class, salt, got.rest(), got.bits);
    return block_from(shared.first, block_bytes, shared.bits != 0 ? nth_bit(shared.bits, group.rank) : group.rank);
  }

  struct shared_attempt {
    u64 first;           ///< word of the leader's attempt
    u64 bits;            ///< its bits
    lane_mask unserved;  ///< lanes of groups that are not served
  };

  /// What the leaders have got, for each lane of its group. All lanes of `active` call.
  WARPHEAP_DEVICE static shared_attempt share_attempt(lane_mask active, lane_group const& group, attempt const& got) {
    // The leader's acquire is every lane's: the old owners' writes happen before our return.
    simt::sync_warp(active);
    shared_attempt shared{simt::shuffle(active, got.word, group.leader), 0, 0};
    bool const is_served = attempt::is_address(shared.first);
    if (simt::ballot(active, !is_served || got.bits != 0) != 0) {
      shared.bits = simt::shuffle(active, got.bits, group.leader);
      shared.unserved = simt::ballot(active, !is_served);
    }
    return shared;
  }

  /// Block `index` of those that begin at `first`.
  WARPHEAP_DEVICE static void* block_from(u64 first, u32 block_bytes, u32 index) {
    return reinterpret_cast<void*>(first + u64{index} * block_bytes);
  }

  /// The rest of serve_groups(), after each leader's attempt. All lanes of whole groups call.
  WARPHEAP_COLD static void* serve_slowly(slab_table table, lane_mask active, lane_mask group_mask, u32 size_class,
                                          u32 salt, slab_reservation reserved, u64 bits) {
    block_service const self{table};
    slab_refill refill;
    u64 claimed = bits;
    if (group_of(group_mask).leads) {
      bool const was_reserved = reserved.blocks() != 0 && reserved.place() == slab_reservation::nowhere;
      refill = was_reserved ? slab_refill{salt, reserved.slab(), {bits}} : slab_refill{salt};
      if (was_reserved) claimed = 0, reserved = {};
      if (reserved.blocks() != 0) refill.leave_crowded(table, size_class, reserved.slab());
    }
    WARPHEAP_NO_UNROLL
    for (;; claimed = 0) {
      if (claimed == 0) claimed = refill_and_claim(table, refill, reserved, size_class, popcount(group_mask));
      refill.begin_again();
      shared_claim const mine = self.share(active, group_mask, size_class, claimed, reserved);
      lane_mask const seekers = simt::ballot(active, mine.is_none);
      if (mine.is_none) return scan(table, seekers, group_mask, size_class);
      active = simt::ballot(active & ~seekers, mine.block == nullptr);
      if (mine.block != nullptr) return mine.block;
      group_mask &= active;
    }
  }

  /// Blocks for a leader, of what it has reserved or of what its refill gets; 0 if that has ended.
  WARPHEAP_DEVICE static u64 refill_and_claim(slab_table const& table, slab_refill& refill, slab_reservation& reserved,
                                              u32 size_class, u32 wanted) {
    u64 claimed = 0;
    WARPHEAP_NO_UNROLL
    while (claimed == 0 && (reserved.blocks() != 0 || !refill.has_ended())) {
      if (reserved.blocks() == 0 || refill.is_replacing()) {
        slab_reservation const taken = refill.next(table.opaque(), warpheap::opaque(size_class), wanted);
        if (taken.blocks() != 0) reserved = taken;
      }
      if (reserved.blocks() != 0 && !refill.is_replacing())
        claimed = block_service{table.opaque()}.claim(reserved, warpheap::opaque(size_class));
    }
    return claimed;
  }

  /// The answer for groups whose refills have ended. All lanes of `active` call, whole groups.
  WARPHEAP_COLD static void* scan(slab_table table, lane_mask active, lane_mask group_mask, u32 size_class) {
    block_service const self{table};
    u32 const random = scale_below(lane_random_bits(), table.geometry().slabs());
    lane_group const all = group_of(group_mask);
    bool const needs_slabs = 2 * all.size >= table.geometry().capacity(size_class);
    scan_cursor scan{simt::shuffle(active, random, all.leader), all.rank, needs_slabs};
    slab_reservation reserved;
    WARPHEAP_NO_UNROLL
    for (;;) {
      lane_group const group = group_of(warpheap::opaque(group_mask));
      bool const is_none = group.leads && scan.finds_none(table.opaque(), warpheap::opaque(size_class));
      if ((simt::ballot(active, is_none) >> group.leader) & 1) scan.pass_round(table);
      u32 const mine = scan.look(table.opaque(), warpheap::opaque(size_class), group.size);
      lane_mask const finders = simt::ballot(active, mine != scan_cursor::none) & group.mask;
      // All finders, or none: lanes of a group are in one round.
      lane_mask const by_count = simt::ballot(active, mine != scan_cursor::none && scan.is_hasty()) & group.mask;
      u32 const finder = lowest_bit(first_not_empty(by_count, finders, group.mask));
      u32 const slab = simt::shuffle(active, mine, finder);
      bool passes = by_count != 0;
      u64 claimed = 0;
      if (group.leads) {
        if (reserved.blocks() == 0 && finders != 0) {
          reserved = scan.reserve(table.opaque(), warpheap::opaque(size_class), group.size, slab);
          passes = passes || reserved.blocks() != 0;
        }
        if (reserved.blocks() != 0)
          claimed = block_service{table.opaque()}.claim(reserved, warpheap::opaque(size_class));
      }
      lane_mask const passing = simt::ballot(active, passes), served = simt::ballot(active, claimed != 0);
      void* block = nullptr;
      if (served != 0) block = self.share(active, group_mask, size_class, claimed, reserved).block;
      bool const passed = finder == simt::lane_id() && ((passing >> group.leader) & 1) != 0;
      scan.go_on(((served >> group.leader) & 1) != 0, finders == 0, passed, group);
      // slab.I4: what any lane saw comes before what any lane looks at next.
      simt::sync_warp(active);
      bool const leaves = block != nullptr || scan.has_ended();
      active = simt::ballot(active, !leaves);
      if (leaves) {
        if (block == nullptr && group.leads) table.add_failures(group.size, class_bytes(size_class));
        return block;
      }
      group_mask &= active;
    }
  }

  WARPHEAP_DEVICE static lane_mask first_not_empty(lane_mask first, lane_mask second, lane_mask third) {
    if (first != 0) return first;
    return second != 0 ? second : third;
  }

  struct shared_claim {
    void* block;   ///< ours, if there are enough
    bool is_none;  ///< the leader has claimed none
  };

  /// The last ranks go first: the leader leads to the end, and a served lane holds no register.
  WARPHEAP_DEVICE shared_claim share(lane_mask active, lane_mask group_mask, u32 size_class, u64 claimed,
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
  /// if each was seen taken in spite of the reservation, which is then released.
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
    if (claimed == 0) table_.opaque().release(slab, blocks);
    reserved = {slab, claimed != 0 ? blocks - popcount(claimed) : 0, 64 * word};
    return claimed;
  }

  WARPHEAP_DEVICE void* address(u32 slab, u32 size_class, u32 index) const {
    return table_.data(slab) + u64{index} * class_bytes(size_class);
  }

  slab_table table_;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::slab_bitmap_parts
