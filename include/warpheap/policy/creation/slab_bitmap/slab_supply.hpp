// Which slab serves a request: the one this multiprocessor uses, one from the class's index, a free one, an empty one of
// another class, a scarce one, in that order; and the certain answer when there is none.
//
// Every row (one of a few of a multiprocessor) keeps a hint for each class: the slab it uses now and the demand that found
// no room there. A hint is only a cache. Who reaches the soft limit of the hinted slab looks for the next one while the
// others use up the rest. Demand is a ticket: of every slab's worth of blocks demanded since the hint changed, one caller
// provides the slab and the others wait for it a little, then help themselves. Classes with few blocks in a slab have no
// hints: a warp takes most of a slab, and the index is as near as a hint.
#pragma once

#include "../../../sync/warp_aggregate.hpp"
#include "../../../util/random.hpp"
#include "slab_table.hpp"

namespace warpheap::inline WARPHEAP_BACKEND {

/// Finds room for the requests of one class.
class slab_supply {
 public:
  /// Promises up to `wanted` blocks of the class to the caller; none if it saw no room, which is no certain answer. Any
  /// lane alone. `tried` is the hint that had no room, slab + 1, or 0.
  WARPHEAP_COLD static slab_reservation reserve(slab_table table, u32 size_class, u32 wanted, u32 tried) {
    return slab_supply{table}.reserve(size_class, wanted, tried);
  }

  /// Finds the slab that a row uses next, unless somebody does already. Called by who reached the soft limit.
  WARPHEAP_COLD static void look_ahead(slab_table table, u32 size_class) { slab_supply{table}.look_ahead(size_class); }

  /// The certain answer: promises blocks if there was room at any moment of the call, else nothing, and then at one
  /// instant every suitable block was owned or promised to a call in progress.
  ///
  /// All lanes of `group_mask` call together, with one class; `wanted` is the leader's; all hold the result.
  WARPHEAP_COLD static slab_reservation search(slab_table table, u32 group_mask, u32 size_class, u32 wanted) {
    return slab_supply{table}.search(group_of(group_mask), size_class, wanted);
  }

  /// Random bits: from where we are and when.
  WARPHEAP_DEVICE static u32 random_bits() {
    return mix32(static_cast<u32>(simt::clock()) + 0x9e37'79b9u * (32 * simt::sm_id() + simt::lane_id()));
  }

 private:
  static constexpr u32 attempts = 4;  // at places that an index names, before the next kind of place
  static constexpr u32 waits = 24;    // pauses for a slab that somebody else is providing
  static constexpr u32 pause_nanoseconds = 128;

  WARPHEAP_DEVICE explicit slab_supply(slab_table const& table) : table_{table} {}

  WARPHEAP_DEVICE u32 random_slab() const { return scale_below(random_bits(), table_.geometry().slabs()); }

  WARPHEAP_DEVICE slab_reservation reserve_at(u32 slab, u32 size_class, u32 wanted, u32 limit) const {
    return slab_table::finish_reserve(table_, slab, size_class, wanted, limit, table_.promise(slab, wanted).word);
  }

  WARPHEAP_DEVICE u32 entry_of(u32 size_class) const {
    u32 const used_log2 = table_.geometry().rows_used_log2(size_class);
    if (used_log2 == slab_geometry::no_rows) return slab_table::no_hint;
    return table_.hint_entry(size_class, used_log2, static_cast<u32>(simt::clock()) >> 4);
  }

  /// Demands `blocks`; true if the caller is the one to provide the slab that they come from. `current` is the hint.
  WARPHEAP_DEVICE bool must_provide(u32 entry, u32 blocks, u32& current) const {
    // relaxed: a hint.
    u64 const old = table_.hint(entry).fetch_add(u64{blocks} << 32, order::relaxed);
    current = static_cast<u32>(old);
    u32 const capacity = static_cast<u32>(table_.hint_limits(entry) >> 32);
    u32 const before = static_cast<u32>(old >> 32) % capacity;
    return before == 0 || before + blocks > capacity;
  }

  WARPHEAP_DEVICE slab_reservation reserve(u32 size_class, u32 wanted, u32 tried) const {
    u32 const entry = entry_of(size_class);
    if (entry == slab_table::no_hint) return provide(size_class, wanted, entry, false);
    u32 current;
    bool const provides = must_provide(entry, wanted, current);
    for (u32 turn = 0;; ++turn) {
      if (current != tried && current != 0) {
        tried = current;
        slab_reservation const taken = reserve_at(current - 1, size_class, wanted, slab_table::no_limit);
        if (taken.blocks() != 0) return taken;
      }
      if (provides || turn == waits) break;
      simt::pause(pause_nanoseconds);
      current = static_cast<u32>(table_.hint(entry).load(order::relaxed));
    }
    return provide(size_class, wanted, entry, current == 0);
  }

  WARPHEAP_DEVICE void look_ahead(u32 size_class) const {
    u32 const entry = entry_of(size_class);
    u32 current;
    if (entry == slab_table::no_hint || !must_provide(entry, 1, current)) return;
    u32 const found = slab_table::find(table_, slab_table::listed(size_class), random_slab());
    if (found != bitmap_index::none)
      table_.hint(entry).store(u64{found} + 1, order::relaxed);  // relaxed: a hint
    else
      make_from(slab_table::free_slabs, size_class, 0, entry);
  }

  /// A promise from the first place that has room, which becomes the hint `entry` if it is to have one. A row without a
  /// slab prefers a free one while there are plenty.
  WARPHEAP_DEVICE slab_reservation provide(u32 size_class, u32 wanted, u32 entry, bool prefers_free) const {
    if (is_certified(size_class)) return {};
    slab_reservation found;
    if (prefers_free && free_slabs_are_plenty()) found = make_from(slab_table::free_slabs, size_class, wanted, entry);
    if (found.blocks() == 0) found = reserve_listed(size_class, wanted, entry);
    if (found.blocks() == 0) found = make_from(slab_table::free_slabs, size_class, wanted, entry);
    if (found.blocks() == 0) found = make_from(slab_table::empty_slabs, size_class, wanted, entry);
    if (found.blocks() == 0) found = reserve_scarce(size_class, wanted);
    return found;
  }

  /// Whether nothing was found for the class and no room has appeared since.
  WARPHEAP_DEVICE bool is_certified(u32 size_class) const {
    // acquire: pairs with the release in search(); the certificate's epoch counts happen before ours.
    u64 const seen = table_.certificate(size_class).load(order::acquire);
    return seen != 0 && seen == table_.epoch_sum() + 1;
  }

  WARPHEAP_DEVICE slab_reservation reserve_listed(u32 size_class, u32 wanted, u32 entry) const {
    slab_limits const limits{table_.geometry().capacity(size_class)};
    for (u32 turn = 0; turn < attempts; ++turn) {
      u32 const slab = slab_table::find(table_, slab_table::listed(size_class), random_slab());
      if (slab == bitmap_index::none) break;
      slab_reservation const taken = reserve_at(slab, size_class, wanted, limits.soft);
      if (taken.blocks() == 0) continue;
      // relaxed: a hint.
      if (entry != slab_table::no_hint && !taken.crossed()) table_.hint(entry).store(u64{slab} + 1, order::relaxed);
      return taken;
    }
    return {};
  }

  /// Whether at least half of 64 slabs around a random place are free.
  WARPHEAP_DEVICE bool free_slabs_are_plenty() const {
    u64 const word = atomic_ref<u64>{table_.index_words(slab_table::free_slabs)[random_slab() / 64]}.load(order::relaxed);
    return popcount(word) >= 32;
  }

  /// A slab made for the class from those in an index, with `wanted` blocks promised.
  WARPHEAP_DEVICE slab_reservation make_from(u32 which, u32 size_class, u32 wanted, u32 entry) const {
    for (u32 turn = 0; turn < attempts; ++turn) {
      u32 const slab = slab_table::find(table_, which, random_slab());
      if (slab == bitmap_index::none) break;
      slab_reservation const made = slab_table::make(table_, slab, size_class, wanted, entry);
      if (made.word() != 0) return made;
      if (which == slab_table::empty_slabs) slab_table::forget_empty(table_, slab);
    }
    return {};
  }

  WARPHEAP_DEVICE slab_reservation reserve_scarce(u32 size_class, u32 wanted) const {
    for (u32 turn = 0; turn < attempts; ++turn) {
      u32 const slab = slab_table::find(table_, slab_table::scarce(size_class), random_slab());
      if (slab == bitmap_index::none) break;
      slab_reservation const taken = slab_table::try_reserve(table_, slab, size_class, wanted);
      if (taken.blocks() != 0) return taken;
    }
    return {};
  }

  WARPHEAP_DEVICE slab_reservation search(lane_group const& group, u32 size_class, u32 wanted) const {
    wanted = broadcast(group, wanted);
    for (;;) {
      u64 const epoch = broadcast(group, group.leads ? table_.epoch_sum() : 0);
      // acquire: as in is_certified().
      bool const certain = group.leads && table_.certificate(size_class).load(order::acquire) == epoch + 1;
      if (broadcast(group, static_cast<u32>(certain))) return {};
      // The leader's acquire is every scanner's: a slab that somebody raised the epoch for must not look full to them.
      simt::sync_warp(group.mask);
      bool disturbed = false;
      slab_reservation const found = scan(group, size_class, wanted, disturbed);
      if (found.blocks() != 0) return found;
      bool const quiet = group.leads && !disturbed && table_.epoch_sum_newest() == epoch;
      if (broadcast(group, static_cast<u32>(quiet))) {
        // release: what we saw happens before whoever relies on it; pairs with the acquire above.
        if (group.leads) table_.certificate(size_class).store(epoch + 1, order::release);
        return {};
      }
      simt::pause(pause_nanoseconds);
    }
  }

  /// Visits every slab, the lanes of the group side by side, until one gives room. Full slabs are marked on the way.
  /// `disturbed` is set if a slab was locked, or changed under our hands. No blind promises here: searchers would feed
  /// each other's restarts.
  WARPHEAP_DEVICE slab_reservation scan(lane_group const& group, u32 size_class, u32 wanted, bool& disturbed) const {
    u32 const slabs = table_.geometry().slabs();
    u32 unsure = 0;
    for (u32 first = 0; first < slabs; first += group.size) {
      u32 const slab = first + group.rank;
      slab_state const now = slab < slabs ? table_.load(slab) : slab_state{slab_state::of(slab_kind::run, 0)};
      if (now.kind() == slab_kind::locked) unsure = 1;
      // A slab of the class is worth a look if it has room, or is full and not marked.
      bool const promising = now.takeable() || (now.serves(size_class) && !now.hard());
      for (u32 candidates = simt::ballot(group.mask, promising); candidates; candidates &= candidates - 1) {
        u32 const lane = lowest_bit(candidates);
        slab_reservation mine;
        if (simt::lane_id() == lane) mine = take_room(slab, size_class, wanted, now, unsure);
        slab_reservation const theirs{simt::shuffle(group.mask, mine.word(), lane)};
        if (theirs.blocks() != 0) return theirs;
      }
    }
    disturbed = simt::reduce_or(group.mask, unsure) != 0;
    return {};
  }

  WARPHEAP_DEVICE slab_reservation take_room(u32 slab, u32 size_class, u32 wanted, slab_state now, u32& unsure) const {
    slab_reservation const taken = now.serves(size_class)
                                       ? slab_table::try_reserve(table_, slab, size_class, wanted)
                                       : slab_table::make(table_, slab, size_class, wanted, slab_table::no_hint);
    if (taken.blocks() != 0) return taken;
    // Only a slab that is now marked as full is sure to have no room.
    slab_state const after = table_.load(slab);
    if (!after.serves(size_class) || !after.hard()) unsure = 1;
    return {};
  }

  slab_table table_;
};

}  // namespace warpheap::inline WARPHEAP_BACKEND
