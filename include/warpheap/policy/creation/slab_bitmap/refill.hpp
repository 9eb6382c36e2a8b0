// SPDX-License-Identifier: Apache-2.0
// Where a leader gets blocks when its cache's active slab has none. The steps, in this order:
//
//   step      names                                            found                none
//   reserved  the active slab, of which the quick path has     what is left of it   active
//             reserved blocks
//   active    the active slab, if another request replaced it  blocks               partial
//   partial   a slab of the class below its high watermark,    blocks; one with     open, after a
//             from a random place on                           room becomes active  few looks
//   open      a free slab, if this request is to open one      blocks; now active   active, or over
//
// The steps are guides, and what they miss costs time. After the refill comes the scan (scan.hpp).
//
// How many slabs a class gets follows its demand (slab_table::begin_opening). Where a pool has many
// slabs and most are free, the refill *spreads*: each cache gets slabs of its own, by its own
// demand. Caches that share a slab fill it together, and each then needs the next. The flags:
//
//   flag       set                                        while it is set, the request
//   replacing  its reservation takes the active slab to   gets the cache another slab, a free one
//              the high watermark, or a word of that had  or else a partial one, and reserves none
//              too few free blocks                        of it; claims what it has afterwards
//   elected    in open: by the demand                     opens a slab
//   waiting    in open: another request was elected       pauses, then tries from active on
//   short      few slabs are free, or after most_waits    does not spread
//   last       in open: too few slabs are free            has gone back to partial, once
#pragma once

#include "../../../sync/lane_random.hpp"
#include "lock.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace slab_bitmap_parts {

/// One request's refill.
class slab_refill {
 public:
  /// A refill that has ended.
  slab_refill() = default;
  /// For the cache that `salt` picks, of which the six lowest bits count.
  WARPHEAP_DEVICE explicit slab_refill(u32 salt) : salt_{salt & 63}, step_{active} {}
  /// As above, after a reservation at the active slab, then `old`, that was not served quickly.
  WARPHEAP_DEVICE slab_refill(u32 salt, u32 slab, slab_state old)
      : old_{old}, tried_{(slab + 1) & most_tried}, salt_{salt & 63}, step_{reserved} {}

  WARPHEAP_DEVICE bool has_ended() const { return step_ == over; }
  WARPHEAP_DEVICE bool is_replacing() const { return is_replacing_; }
  /// After a claim in `slab` that got too few blocks: lets this request replace it as active slab
  /// at times, since crowds at full slabs cost time. The fuller the slab, the fewer slabs need to
  /// be free: half of them for a full one.
  WARPHEAP_DEVICE void leave_crowded(slab_table const& table, u32 size_class, u32 slab) {
    if (table.geometry().has_many_slabs() || lane_random_bits() % crowds_a_look != 0) return;
    u32 const capacity = table.geometry().capacity(size_class), used = table.load(slab).used();
    u32 const enough = used < capacity ? 63 - 32 * used / capacity : half;
    if (free_slabs_around(table, random_slab(table)) <= enough) return;
    // Another one may have replaced it.
    if (table.load_cached(table.cache_entry(size_class, salt_)).active() != slab + 1) return;
    replace(enough);
  }
  /// For blocks that are still missing.
  WARPHEAP_DEVICE void begin_again() { looks_ = waits_ = looks_last_ = 0; }

  /// Whether requests of `wanted` blocks use the cache; for larger ones the index is as near.
  WARPHEAP_HOST_DEVICE static bool uses_cache(u32 wanted, u32 capacity) { return requests_a_slab * wanted <= capacity; }

  /// Looks at one slab and reserves up to `wanted` of its blocks, often none. A leader alone.
  WARPHEAP_DEVICE slab_reservation next(slab_table const& table, u32 size_class, u32 wanted) {
    slab_limits const limits{table.geometry().capacity(size_class)};
    u32 const entry = uses_cache(wanted, limits.capacity) ? table.cache_entry(size_class, salt_) : slab_table::no_entry;
    bool spreads = entry != slab_table::no_entry && !is_short_ && table.geometry().has_many_slabs();
    if (waits(table, size_class, entry, spreads)) return {};
    bool const was_reserved = step_ == reserved, by_cache = step_ == active, by_index = !was_reserved && !by_cache;
    u32 slab = tried_ - 1;
    if (looks_ == 0 && (is_replacing_ ? step_ == open && !looks_last_ : step_ == partial && spreads) &&
        free_slabs_around(table, random_slab(table)) <= most_free(wanted)) {
      // Looks at slabs that are empty alone, or at free ones, would mostly be in vain.
      is_short_ = true;
      spreads = false;
      if (is_replacing_) {
        looks_last_ = true;
        step_ = partial;
      }
    }
    if (by_index) slab = find(table, step_ == open ? slab_table::free_slabs : slab_table::partial(size_class));
    if (step_ == open) return open_slab(table, size_class, wanted, slab, entry, spreads);
    // A slab with room for one request alone is found by many.
    u32 const at_first = spreads || 2 * wanted >= limits.capacity ? few : many;
    u32 const looks = looks_last_ && !is_replacing_ ? most_looks : at_first;
    if (by_index && (slab == slab_index::none || ++looks_ > looks)) step_ = open;
    if (by_cache) step_ = partial;
    if (was_reserved) step_ = active;
    return slab == slab_index::none ? slab_reservation{}
                                    : reserve(table, size_class, wanted, slab, entry, was_reserved, by_index, spreads);
  }

 private:
  enum step_of : u32 { over, reserved, active, partial, open };
  static constexpr u32 requests_a_slab = 8;   // that a slab must serve for the cache to be used
  static constexpr u32 room_to_activate = 4;  // requests that a newly active slab has room for
  static constexpr u32 few = 1, many = 8;     // looks at partial slabs, before the last one
  static constexpr u32 most_looks = 62;       // before a scan, which costs more than all
  static constexpr u32 crowds_a_look = 16;    // claims that got too few, for a look at what is free
  static constexpr u32 most_waits = 16;       // of waits_, which wraps at 64
  // A slab is opened ahead of demand if of the 64 slabs around more are free than `half`: for a
  // cache without one, or in place of a used-up one. A request of few blocks leaves `most`: in
  // mixed sizes most are such, and took half of the pool from those that need it. A cache that has
  // slabs of its own leaves `some`; with more than `some`, half a slab's worth of demand opens one.
  static constexpr u32 half = 31, most = 44, few_blocks = 4, some = 8;
  static constexpr u32 pause_nanoseconds = 128;

  WARPHEAP_DEVICE static u32 random_slab(slab_table const& table) {
    return scale_below(lane_random_bits(), table.geometry().slabs());
  }
  WARPHEAP_DEVICE static u32 find(slab_table const& table, u32 which) {
    slab_table const here = table.opaque();
    return here.index(which).find(random_slab(here));
  }
  /// How many of the 64 slabs around `slab` are free. A hint.
  WARPHEAP_DEVICE static u32 free_slabs_around(slab_table const& table, u32 slab) {
    return popcount(table.index(slab_table::free_slabs).load(slab));
  }
  /// A slab with at most these many free ones around it is not opened early.
  WARPHEAP_DEVICE u32 most_free(u32 wanted) const {
    if (most_free_ != 0) return most_free_;
    return wanted < few_blocks ? most : half;
  }

  /// The cache is to get another slab: a free one if more than `enough` are, or a partial one.
  WARPHEAP_DEVICE void replace(u32 enough) {
    most_free_ = enough & 63;
    is_replacing_ = true;
    is_waiting_ = false;
    step_ = open;
    looks_ = 0;
  }

  /// From active to partial or open, unless the active slab was replaced. Whether the request
  /// pauses, for a slab that another one opens: it runs, and opens one or finds none.
  WARPHEAP_DEVICE bool waits(slab_table const& table, u32 size_class, u32 entry, bool spreads) {
    if (step_ == active) {
      u32 const current = entry != slab_table::no_entry ? table.load_cached(entry).active() : 0;
      if (current != 0 && current != tried_) {
        tried_ = current & most_tried;
        return false;
      }
      if (is_waiting_ && spreads) {
        if (++waits_ > most_waits) is_short_ = true;
        simt::pause(pause_nanoseconds);
        return true;
      }
      // A burst that begins has no partial slabs: looks would only crowd the index.
      step_ = current == 0 && spreads ? open : partial;
    }
    bool const waits = step_ == open && is_waiting_ && !is_elected_ && table.is_opening(size_class);
    if (!waits || ++waits_ > most_waits) return false;
    step_ = active;
    simt::pause(pause_nanoseconds);
    return true;
  }

  /// Reserves blocks of a slab in use, or keeps those reserved already.
  WARPHEAP_DEVICE slab_reservation reserve(slab_table const& table, u32 size_class, u32 wanted, u32 slab, u32 entry,
                                           bool was_reserved, bool by_index, bool spreads) {
    slab_limits const limits{table.geometry().capacity(size_class)};
    slab_state old = was_reserved ? old_ : table.load(slab);
    bool const serves = old.serves(size_class);
    // The last sixteenth of a slab is for the bump cursor: later its free blocks take long to find.
    // A cache that gets slabs of its own joins empty ones alone.
    u32 const room_ends = old.bump() < limits.capacity ? limits.capacity : limits.high;
    u32 const limit = by_index && spreads ? 1 : room_ends;
    bool const has_room = serves && old.used() < limit;
    // Also of a full slab on the partial list: a reservation takes it off.
    bool const reserves = !is_replacing_ && (has_room || (serves && old.used() >= limits.high && !old.is_unlisted()));
    slab_reservation taken;
    if (was_reserved || reserves) {
      if (!was_reserved) old = table.reserve(slab, wanted);
      taken = table.release_excess(slab, size_class, wanted, old, limit);
    }
    if (taken.blocks() != 0 && is_elected_) {
      table.end_opening(size_class);
      is_elected_ = is_waiting_ = false;
      step_ = active;
    }
    // A reservation by this entry would hide an empty slab from other classes.
    if (was_reserved && !serves) table.clear_active(entry, slab);
    if (by_index && has_room && old.used() + room_to_activate * wanted <= limits.high) {
      table.set_active(entry, slab);
      is_replacing_ = false;
      step_ = active;
    }
    if (taken.reaches_high() && entry != slab_table::no_entry) replace(table.geometry().has_many_slabs() ? some : half);
    return taken;
  }

  /// Step open. `slab`: a free one, or none.
  WARPHEAP_DEVICE slab_reservation open_slab(slab_table const& table, u32 size_class, u32 wanted, u32 slab, u32 entry,
                                             bool spreads) {
    bool const is_none = slab == slab_index::none, is_early = spreads || is_replacing_;
    // Opening slabs ahead of the class's demand leaves most slabs free.
    u32 const around = is_none ? 0 : free_slabs_around(table, slab);
    u32 const enough = most_free(wanted);
    bool const lacks = is_early && around <= enough;
    // Others may have made room since the last look; a cache that begins has not looked yet.
    bool const looks_again = is_replacing_ ? lacks : is_none && (spreads || entry == slab_table::no_entry);
    if (looks_again && !looks_last_) {
      looks_last_ = is_short_ = true;
      // The cache's demand elected it: it is none of the openers that end_opening() counts.
      if (spreads) is_elected_ = false;
      look_at_partial(0);
      return {};
    }
    // A request that replaces the active slab opens one ahead of demand, in pools of any size.
    opening made{{}, is_none || lacks, is_none, lacks};
    bool const elects = !made.ends && !is_elected_ && !is_replacing_;
    if (elects)
      is_elected_ =
          spreads ? is_first(table, size_class, wanted, entry) : table.begin_opening(size_class, wanted, around > some);
    if (elects && is_elected_ && !is_early) {
      // Once more, now that others wait: one may have been opened since the last look.
      look_at_partial(many);
      return {};
    }
    bool const opens = is_elected_ || is_replacing_;
    if (!made.ends && opens) made = try_opening(table, size_class, wanted, slab, entry, is_early, enough);
    if (made.ends && is_elected_ && !is_early) table.end_opening(size_class);
    go_on(made, opens);
    return made.blocks;
  }

  /// The result of step open.
  struct opening {
    slab_reservation blocks;
    bool ends, gives_up, lacks;  ///< lacks: too few slabs are free
  };

  WARPHEAP_DEVICE opening try_opening(slab_table const& table, u32 size_class, u32 wanted, u32 slab, u32 entry,
                                      bool is_early, u32 enough) {
    slab_reservation opened;
    u32 const left = slab_lock::take_free(table, slab);
    // Many see the same slabs free: those that came too late give theirs back.
    bool const lacks = is_early && left != 0 && left <= enough;
    if (lacks) slab_lock::unlock(table, slab, slab_kind::locked, order::release);
    else if (left != 0) opened = slab_lock::publish(table, slab, size_class, is_replacing_ ? 0 : wanted, entry);
    // Another thread may be faster: then this one tries the next.
    bool const gives_up = left == 0 && ++waits_ > most_waits;
    return {opened, left != 0 || gives_up, gives_up, lacks};
  }

  /// Step partial is next, after `looks` looks of it.
  WARPHEAP_DEVICE void look_at_partial(u32 looks) {
    step_ = partial;
    looks_ = looks & 63;
  }

  /// After step open: it ends, or is tried again by this request, if it `opens`, or by others.
  WARPHEAP_DEVICE void go_on(opening const& made, bool opens) {
    if (made.ends || !opens) step_ = made.gives_up && !is_replacing_ ? over : active;
    is_waiting_ = !made.ends && !opens;
    looks_ = 0;
    is_short_ = is_short_ || made.lacks;
    if (!made.ends) {
      simt::pause(pause_nanoseconds);
      return;
    }
    is_elected_ = is_replacing_ = false;
    most_free_ = 0;
  }

  /// Whether this request is the first of a slab's worth of the cache's demand.
  WARPHEAP_DEVICE static bool is_first(slab_table const& table, u32 size_class, u32 wanted, u32 entry) {
    u32 const worth = 1u << log2_floor(table.geometry().capacity(size_class));
    u32 const begun = table.add_demand(entry, wanted).demand() % worth;
    return begun == 0 || begun + wanted > worth;
  }

  static constexpr u32 most_tried = (1u << 26) - 1;  ///< more than there are slabs

  slab_state old_;       ///< of the active slab, before the reservation of step reserved
  u32 tried_ : 26 = 0;   ///< the active slab as last tried, plus 1
  u32 salt_ : 6 = 0;     ///< picks the cache
  u32 step_ : 3 = over;  ///< the next one
  u32 looks_ : 6 = 0;    ///< at partial slabs
  u32 waits_ : 6 = 0;    ///< pauses while another opens a slab, and lost locks
  u32 is_waiting_ : 1 = 0;
  u32 is_replacing_ : 1 = 0;
  u32 is_elected_ : 1 = 0;
  u32 is_short_ : 1 = 0;
  u32 looks_last_ : 1 = 0;
  u32 most_free_ : 6 = 0;  ///< most_free() of one that replaces the active slab
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::slab_bitmap_parts
