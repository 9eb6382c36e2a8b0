// Which slab serves a request: the one this multiprocessor uses, one from the class's index, a free one, an empty one of
// another class, a scarce one, in that order; and the certain answer when there is none.
//
// Every row (a multiprocessor, or a few on small pools) keeps a hint for each class: the slab it uses now and the demand
// that found no room there. A hint is only a cache. Who reaches the soft limit of the hinted slab looks for the next one
// while the others use up the rest. Demand is a ticket: of every slab's worth of blocks demanded since the hint changed,
// one caller provides the slab and the others wait for it a little, then help themselves. A request that fills a slab does
// not wait.
#pragma once

#include "../../../sync/warp_aggregate.hpp"
#include "../../../util/random.hpp"
#include "slab_table.hpp"

namespace warpheap::inline WARPHEAP_BACKEND {

/// Finds room for the requests of one class. Stateless; `table` is the heap.
class slab_supply {
 public:
  WARPHEAP_DEVICE explicit slab_supply(slab_table const& table) : table_{table} {}

  /// Promises up to `wanted` blocks of the class to the caller; none if it saw no room, which is no certain answer. Any
  /// lane alone.
  WARPHEAP_DEVICE slab_reservation reserve(u32 size_class, u32 wanted) const {
    // relaxed: a hint; the reservation checks it.
    u32 const current = static_cast<u32>(table_.hint(size_class).load(order::relaxed));
    slab_reservation const taken = reserve_at(current, size_class, wanted);
    if (taken.crossed()) replace_hint(table_, size_class);
    return taken.blocks() ? taken : reserve_elsewhere(table_, size_class, wanted, current);
  }

  /// The certain answer: promises blocks to the group's leader if there was room at any moment of the call, else nothing,
  /// and then at one instant every suitable block was owned or promised to a call in progress.
  ///
  /// All lanes of `group_mask` call together, with one class; `wanted` is the leader's; all hold the result.
  WARPHEAP_COLD static slab_reservation search(slab_table table, u32 group_mask, u32 size_class, u32 wanted) {
    return slab_supply{table}.search(group_of(group_mask), size_class, wanted);
  }

 private:
  static constexpr u32 attempts = 4;  // at places that hints name, before the next kind of place
  static constexpr u32 waits = 6;     // pauses for a slab that somebody else is providing
  static constexpr u32 pause_nanoseconds = 200;

  WARPHEAP_DEVICE slab_reservation search(lane_group const& group, u32 size_class, u32 wanted) const {
    wanted = broadcast(group, wanted);
    for (;;) {
      u64 const epoch = broadcast(group, group.leads ? table_.epoch_sum() : 0);
      // acquire: pairs with the release below; the certificate's epoch counts happen before ours.
      bool const certain = group.leads && table_.certificate(size_class).load(order::acquire) == epoch + 1;
      if (broadcast(group, static_cast<u32>(certain))) return {};
      bool disturbed = false;
      slab_reservation const found = scan(group, size_class, wanted, disturbed);
      if (found.blocks() != 0) return found;
      bool quiet = false;
      if (group.leads) quiet = !disturbed && table_.epoch_sum_newest() == epoch;
      if (broadcast(group, static_cast<u32>(quiet))) {
        // release: what we saw happens before whoever relies on it; pairs with the acquire above.
        if (group.leads) table_.certificate(size_class).store(epoch + 1, order::release);
        return {};
      }
      simt::pause(100);
    }
  }

  WARPHEAP_DEVICE static u32 random_bits() {
    return mix32(static_cast<u32>(simt::clock()) + 0x9e37'79b9u * (32 * simt::sm_id() + simt::lane_id()));
  }
  WARPHEAP_DEVICE u32 random_slab() const { return scale_below(random_bits(), table_.geometry().slabs()); }

  /// A reservation at a hinted slab, given as slab + 1; nothing at 0.
  WARPHEAP_DEVICE slab_reservation reserve_at(u32 hinted, u32 size_class, u32 wanted) const {
    if (hinted == 0) return {};
    return table_.reserve(hinted - 1, size_class, wanted, table_.geometry().capacity(size_class));
  }

  WARPHEAP_DEVICE void set_hint(u32 size_class, u32 slab) const {
    // relaxed: a hint. The demand starts again from 0.
    table_.hint(size_class).store(u64{slab} + 1, order::relaxed);
  }

  /// Demands `blocks`; true if the caller is the one to provide the slab that they come from. `current` is updated.
  WARPHEAP_DEVICE bool must_provide(u32 size_class, u32 blocks, u32& current) const {
    // relaxed: a hint.
    u64 const old = table_.hint(size_class).fetch_add(u64{blocks} << 32, order::relaxed);
    current = static_cast<u32>(old);
    u32 const before = static_cast<u32>(old >> 32) % table_.geometry().capacity(size_class);
    return before == 0 || before + blocks > table_.geometry().capacity(size_class);
  }

  /// Looks for the slab that this row uses next, unless somebody does already.
  WARPHEAP_COLD static void replace_hint(slab_table table, u32 size_class) { slab_supply{table}.replace_hint(size_class); }

  WARPHEAP_DEVICE void replace_hint(u32 size_class) const {
    u32 current;
    if (!must_provide(size_class, 1, current)) return;
    u32 const listed = find_listed(size_class);
    if (listed != bitmap_index::none) return set_hint(size_class, listed);
    u32 const fresh = lock_free(size_class);
    if (fresh == bitmap_index::none) return;
    table_.publish(fresh, size_class, 0);
    set_hint(size_class, fresh);
  }

  /// A reservation where the hint had no room, given as slab + 1.
  WARPHEAP_COLD static slab_reservation reserve_elsewhere(slab_table table, u32 size_class, u32 wanted, u32 tried) {
    return slab_supply{table}.reserve_elsewhere(size_class, wanted, tried);
  }

  WARPHEAP_DEVICE slab_reservation reserve_elsewhere(u32 size_class, u32 wanted, u32 tried) const {
    bool const fills_slab = wanted >= table_.geometry().capacity(size_class);
    u32 current = tried;
    bool const provides = fills_slab || must_provide(size_class, wanted, current);
    for (u32 turn = 0; !fills_slab; ++turn) {
      if (current != tried) {
        slab_reservation const taken = reserve_at(current, size_class, wanted);
        if (taken.crossed()) replace_hint(table_, size_class);
        if (taken.blocks()) return taken;
        tried = current;
      }
      if (provides || turn == waits) break;
      simt::pause(pause_nanoseconds);
      current = static_cast<u32>(table_.hint(size_class).load(order::relaxed));
    }
    slab_reservation const found = provide(size_class, wanted, tried == 0);
    if (found.blocks() && !found.crossed() && !fills_slab) set_hint(size_class, found.slab());
    return found;
  }

  /// A promise from the first place that has room. A row without a slab prefers a free one while there are plenty.
  WARPHEAP_DEVICE slab_reservation provide(u32 size_class, u32 wanted, bool prefers_free) const {
    // relaxed: whether somebody ever found nothing; search() reads it again.
    if (table_.certificate(size_class).load(order::relaxed) != 0 && still_certified(size_class)) return {};
    if (prefers_free && free_slabs_are_plenty()) {
      u32 const slab = lock_free(size_class);
      if (slab != bitmap_index::none) return publish(slab, size_class, wanted);
    }
    for (u32 turn = 0; turn < attempts; ++turn) {
      u32 const slab = find_listed(size_class);
      if (slab == bitmap_index::none) break;
      slab_limits const limits{table_.geometry().capacity(size_class)};
      slab_reservation const taken = table_.reserve(slab, size_class, wanted, limits.soft);
      if (taken.blocks()) return taken;
    }
    u32 slab = lock_free(size_class);
    if (slab == bitmap_index::none) slab = lock_empty(size_class);
    if (slab != bitmap_index::none) return publish(slab, size_class, wanted);
    return reserve_scarce(size_class, wanted);
  }

  WARPHEAP_DEVICE bool still_certified(u32 size_class) const {
    u64 const epoch = table_.epoch_sum();
    // acquire: as in search().
    return table_.certificate(size_class).load(order::acquire) == epoch + 1;
  }

  WARPHEAP_DEVICE slab_reservation publish(u32 slab, u32 size_class, u32 wanted) const {
    u32 const capacity = table_.geometry().capacity(size_class);
    return table_.publish(slab, size_class, wanted < capacity ? wanted : capacity);
  }

  WARPHEAP_DEVICE u32 find_listed(u32 size_class) const { return table_.listed(size_class).find(random_slab()); }

  /// Whether at least half of 64 slabs around a random place are free.
  WARPHEAP_DEVICE bool free_slabs_are_plenty() const {
    u64 const word = atomic_ref<u64>{table_.index_words(0)[random_slab() / 64]}.load(order::relaxed);
    return popcount(word) >= 32;
  }

  /// Locks a free slab for the class; `none` if it saw none.
  WARPHEAP_DEVICE u32 lock_free(u32 size_class) const {
    for (u32 turn = 0; turn < attempts; ++turn) {
      u32 const slab = table_.free_slabs().find(random_slab());
      if (slab == bitmap_index::none || table_.try_lock(slab, size_class)) return slab;
    }
    return bitmap_index::none;
  }

  /// Locks an empty slab of any class for this one; `none` if it saw none.
  WARPHEAP_DEVICE u32 lock_empty(u32 size_class) const {
    for (u32 turn = 0; turn < attempts; ++turn) {
      u32 const slab = table_.empty_slabs().find(random_slab());
      if (slab == bitmap_index::none || table_.try_lock(slab, size_class)) return slab;
      // Not empty any more: put it out, unless it became empty just now.
      table_.empty_slabs().clear(slab);
      slab_state const now = table_.load(slab);
      if (now.live() && now.used() == 0) table_.empty_slabs().set(slab);
    }
    return bitmap_index::none;
  }

  WARPHEAP_DEVICE slab_reservation reserve_scarce(u32 size_class, u32 wanted) const {
    for (u32 turn = 0; turn < attempts; ++turn) {
      u32 const slab = table_.scarce(size_class).find(random_slab());
      if (slab == bitmap_index::none) return {};
      slab_state const now = table_.load(slab);
      slab_reservation const taken = table_.try_reserve(slab, size_class, wanted, now);
      if (taken.blocks()) return taken;
      if (is_full(now, size_class)) table_.mark_full(slab, now);
    }
    return {};
  }

  WARPHEAP_DEVICE bool is_full(slab_state now, u32 size_class) const {
    return now.serves(size_class) && now.used() >= table_.geometry().capacity(size_class);
  }

  /// Visits every slab, the lanes of the group side by side, until one gives room. Full slabs are marked on the way.
  /// `disturbed` is set in the leader if a slab was locked, or changed under our hands.
  WARPHEAP_DEVICE slab_reservation scan(lane_group const& group, u32 size_class, u32 wanted, bool& disturbed) const {
    u32 const slabs = table_.geometry().slabs();
    u32 locked = 0;
    for (u32 first = 0; first < slabs; first += group.size) {
      u32 const slab = first + group.rank;
      slab_state now = slab < slabs ? table_.load(slab) : slab_state{};
      bool const has_room = slab < slabs && (now.takeable() || (now.serves(size_class) && !is_full(now, size_class)));
      if (slab < slabs && now.kind() == slab_kind::locked) locked = 1;
      if (slab < slabs && is_full(now, size_class)) table_.mark_full(slab, now);
      for (u32 candidates = simt::ballot(group.mask, has_room); candidates; candidates &= candidates - 1) {
        u32 const lane = lowest_bit(candidates);
        slab_reservation mine;
        if (simt::lane_id() == lane) mine = take_room(slab, size_class, wanted, now);
        slab_reservation const theirs{simt::shuffle(group.mask, mine.word(), lane)};
        if (theirs.blocks() != 0) return theirs;
        locked = 1;
      }
    }
    disturbed = simt::reduce_or(group.mask, locked) != 0;
    return {};
  }

  WARPHEAP_DEVICE slab_reservation take_room(u32 slab, u32 size_class, u32 wanted, slab_state now) const {
    if (now.serves(size_class)) return table_.try_reserve(slab, size_class, wanted, now);
    if (table_.try_lock(slab, size_class)) return publish(slab, size_class, wanted);
    return {};
  }

  slab_table table_;
};

}  // namespace warpheap::inline WARPHEAP_BACKEND
