// Which slab serves a request: the one this multiprocessor uses, one from the class's index, a free one, an empty one of
// another class, a scarce one, in that order; and the certain answer when there is none.
//
// Every row (one of a few of a multiprocessor) keeps a hint for each class: the slab it uses, the one it will use next, and
// the demand that found no room. Who takes the used slab past an eighth looks for the next one, and who takes it to the
// soft limit goes over to that. Where there is no next one, demand is a ticket: of every slab's worth of blocks demanded since the hint changed,
// one caller provides the slab and the others wait for it a little, then help themselves. A request for a good part of a
// slab goes by no hint: the index is as near.
#pragma once

#include "../../../sync/warp_aggregate.hpp"
#include "../../../util/random.hpp"
#include "slab_table.hpp"

namespace warpheap::inline WARPHEAP_BACKEND {

/// Finds room for the requests of one class. Inlined into one call off the common path; what it calls calls nothing.
class slab_supply {
 public:
  WARPHEAP_DEVICE slab_supply(slab_table const& table, u32 size_class) : table_{table}, size_class_{size_class} {}

  /// Promises up to `wanted` blocks to the caller; none if it saw no room, which is no certain answer. Any lane alone.
  /// `tried` is the hint that had no room, slab + 1, or 0.
  WARPHEAP_DEVICE slab_reservation reserve(u32 wanted, u32 tried) const {
    u32 const entry = entry_for(wanted);
    slab_hint seen;
    if (entry != slab_table::no_hint) {
      // relaxed: a hint. Most of those who find the slab full find another one in its place by now.
      seen.word = table_.hint(entry).load(order::relaxed);
      bool const moved = seen.current() != tried && seen.current() != 0;
      bool const provides = !moved && must_provide(entry, wanted, seen);
      for (u32 turn = 0;; ++turn) {
        u32 const offered = seen.current() != tried && seen.current() != 0 ? seen.current() : seen.next();
        if (offered != tried && offered != 0) {
          tried = offered;
          slab_reservation const taken = reserve_at(offered - 1, wanted, slab_table::no_limit);
          if (taken.blocks() != 0) return taken;
        }
        // Whoever comes to a row without a slab waits longer: a burst begins, and all of it comes at once.
        if (provides || turn >= (tried == 0 ? 4 * waits : waits)) break;
        simt::pause(pause_nanoseconds);
        seen.word = table_.hint(entry).load(order::relaxed);
      }
    }
    if (is_certified()) return {};
    return provide(wanted, entry, seen.current() == 0 && entry != slab_table::no_hint ? fresh : roomy);
  }

  /// Finds the slab that a row uses next, unless it knows one. `wanted` is what the caller wanted of the slab in use.
  WARPHEAP_DEVICE void look_ahead(u32 wanted) const {
    u32 const entry = entry_for(wanted);
    // relaxed: a hint.
    if (entry != slab_table::no_hint && slab_hint{table_.hint(entry).load(order::relaxed)}.next() == 0)
      provide(0, entry, roomy);
  }

  /// Goes over from slab `left`, which has reached its soft limit, to the next one, if there is one.
  WARPHEAP_DEVICE void move_on(u32 wanted, u32 left) const {
    u32 const entry = entry_for(wanted);
    if (entry == slab_table::no_hint) return;
    // relaxed, all of it: a hint.
    slab_hint seen{table_.hint(entry).load(order::relaxed)};
    if (seen.current() == left + 1 && seen.next() != 0)
      table_.hint(entry).compare_exchange(seen.word, seen.advanced().word, order::relaxed, order::relaxed);
  }

  /// The certain answer: promises blocks if there was room at any moment of the call, else nothing, and then at one
  /// instant every suitable block was owned or promised to a call in progress. All lanes of the group call together;
  /// `wanted` is the leader's; the leader holds the result.
  WARPHEAP_DEVICE slab_reservation search(lane_group const& group, u32 wanted) const {
    for (;;) {
      u64 const epoch = broadcast(group, group.leads ? table_.epoch_sum() : 0);
      // acquire: as in is_certified().
      bool const certain = group.leads && table_.certificate(size_class_).load(order::acquire) == epoch + 1;
      if (broadcast(group, static_cast<u32>(certain))) return {};
      // The leader's acquire is every scanner's: a slab that somebody raised the epoch for must not look full to them.
      simt::sync_warp(group.mask);
      u32 unsure = 0;
      for (u32 from = 0;;) {
        u32 const seen = slab_table::scan(table_, group.mask, size_class_, from);
        unsure |= seen & slab_table::scan_unsure;
        from = seen & ~slab_table::scan_unsure;
        if (from == slab_table::scan_end) break;
        slab_reservation found;
        if (group.leads) found = take_room(from, wanted, unsure);
        if (broadcast(group, found.blocks()) != 0) return found;
        ++from;
      }
      bool const quiet = group.leads && unsure == 0 && table_.epoch_sum_newest() == epoch;
      if (broadcast(group, static_cast<u32>(quiet))) {
        // release: what we saw happens before whoever relies on it; pairs with the acquire above.
        if (group.leads) table_.certificate(size_class_).store(epoch + 1, order::release);
        return {};
      }
      simt::pause(pause_nanoseconds);
    }
  }

  /// Random bits: from where we are and when.
  WARPHEAP_DEVICE static u32 random_bits() {
    return mix32(static_cast<u32>(simt::clock()) + 0x9e37'79b9u * (32 * simt::sm_id() + simt::lane_id()));
  }

 private:
  /// Where room may be, in the order in which it is looked for.
  enum place : u32 {
    roomy,    ///< listed slabs that are at most half full
    fresh,    ///< free slabs, while there are plenty: memory buys speed
    listed,   ///< listed slabs
    unused,   ///< free slabs
    emptied,  ///< empty slabs of any class
    scarce,   ///< slabs of the class that are not known to be full
    nowhere
  };

  static constexpr u32 attempts = 8;  // at slabs that an index names, before the next kind of place
  static constexpr u32 waits = 8;     // pauses for a slab that somebody else is providing
  static constexpr u32 pause_nanoseconds = 128;

  WARPHEAP_DEVICE u32 random_slab() const { return scale_below(random_bits(), table_.geometry().slabs()); }

  /// The hint for requests of `wanted` blocks; no_hint where a slab serves too few of them.
  WARPHEAP_DEVICE u32 entry_for(u32 wanted) const {
    if (8 * wanted > table_.geometry().capacity(size_class_)) return slab_table::no_hint;
    u32 const used_log2 = table_.geometry().rows_used_log2(size_class_);
    return table_.hint_entry(size_class_, used_log2, static_cast<u32>(simt::clock()) >> 4);
  }

  /// Demands `blocks` and puts the next slab, if there is one, in the place of the one in use. True if the caller is the
  /// one to provide a slab; `seen` is the hint as it was.
  WARPHEAP_DEVICE bool must_provide(u32 entry, u32 blocks, slab_hint& seen) const {
    // relaxed, all of it: a hint.
    seen.word = table_.hint(entry).fetch_add(slab_hint::demand_of(blocks), order::relaxed);
    if (seen.next() != 0) {
      u64 expected = seen.word + slab_hint::demand_of(blocks);
      table_.hint(entry).compare_exchange(expected, seen.advanced().word, order::relaxed, order::relaxed);
      return false;
    }
    u32 const capacity = static_cast<u32>(table_.hint_limits(entry) >> 32);
    u32 const round = capacity < slab_hint::max_demand ? capacity : slab_hint::max_demand;
    u32 const before = seen.demand() % round;
    return before == 0 || before + blocks > round;
  }

  /// Whether nothing was found for the class and no room has appeared since.
  WARPHEAP_DEVICE bool is_certified() const {
    // acquire: pairs with the release in search(); the certificate's epoch counts happen before ours.
    u64 const seen = table_.certificate(size_class_).load(order::acquire);
    return seen != 0 && seen == table_.epoch_sum() + 1;
  }

  WARPHEAP_DEVICE slab_reservation reserve_at(u32 slab, u32 wanted, u32 limit) const {
    return slab_table::finish_reserve(table_, slab, size_class_, wanted, limit, table_.promise(slab, wanted).word);
  }

  /// A promise from the first place that has room; its slab becomes the hint `entry` where there is one. With nothing
  /// wanted, a slab for the hint alone.
  WARPHEAP_DEVICE slab_reservation provide(u32 wanted, u32 entry, u32 from) const {
    for (u32 where = from; where < nowhere; ++where) {
      if (where == fresh && !free_slabs_are_plenty()) continue;
      for (u32 turn = 0; turn < attempts; ++turn) {
        u32 const slab = slab_table::find(table_, index_of(where), random_slab());
        if (slab == bitmap_index::none) break;
        slab_reservation const taken = take(where, slab, wanted, entry);
        if (taken.is_taken() && (taken.blocks() != 0 || wanted == 0)) return taken;
        if (where == roomy) break;
      }
    }
    return {};
  }

  WARPHEAP_DEVICE u32 index_of(u32 where) const {
    if (where == fresh || where == unused) return slab_table::free_slabs;
    if (where == emptied) return slab_table::empty_slabs;
    return where == scarce ? slab_table::scarce(size_class_) : slab_table::listed(size_class_);
  }

  WARPHEAP_DEVICE slab_reservation take(u32 where, u32 slab, u32 wanted, u32 entry) const {
    if (where == fresh || where == unused) return slab_table::make(table_, slab, size_class_, wanted, entry);
    if (where == emptied) return slab_table::recycle(table_, slab, size_class_, wanted, entry);
    if (where == scarce) return slab_table::try_reserve(table_, slab, size_class_, wanted);
    slab_limits const limits{table_.geometry().capacity(size_class_)};
    u32 const limit = where == roomy ? limits.roomy : limits.soft;
    // A look first: blind promises by a crowd that all found the same slab would keep one another out.
    slab_state const now = table_.load(slab);
    if (!now.serves(size_class_) || now.used() >= limit) return {};
    slab_reservation const taken =
        wanted != 0 ? reserve_at(slab, wanted, limits.soft) : slab_reservation{slab, 0, slab_reservation::anywhere};
    if (taken.is_taken() && (taken.blocks() != 0 || wanted == 0) && entry != slab_table::no_hint)
      table_.set_hint(entry, slab, wanted == 0);
    return taken;
  }

  /// Whether at least half of 64 slabs around a random place are free.
  WARPHEAP_DEVICE bool free_slabs_are_plenty() const {
    u64 const word =
        atomic_ref<u64>{table_.index_words(slab_table::free_slabs)[random_slab() / 64]}.load(order::relaxed);
    return popcount(word) >= 32;
  }

  /// What a searcher takes of a slab in which it saw room, or could not be sure that there was none.
  WARPHEAP_DEVICE slab_reservation take_room(u32 slab, u32 wanted, u32& unsure) const {
    slab_state const now = table_.load(slab);
    slab_reservation taken;
    if (now.kind() == slab_kind::free) taken = slab_table::make(table_, slab, size_class_, wanted, slab_table::no_hint);
    else if (now.takeable()) taken = slab_table::recycle(table_, slab, size_class_, wanted, slab_table::no_hint);
    else if (now.serves(size_class_)) taken = slab_table::try_reserve(table_, slab, size_class_, wanted);
    if (taken.blocks() != 0) return taken;
    // Only a slab that is now marked as full is sure to have no room.
    slab_state const after = table_.load(slab);
    if (!after.serves(size_class_) || !after.hard()) unsure = slab_table::scan_unsure;
    return {};
  }

  slab_table table_;
  u32 size_class_;
};

}  // namespace warpheap::inline WARPHEAP_BACKEND
