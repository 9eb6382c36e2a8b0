// The certain answer when nobody knows of a slab with room: every slab is looked at, by all lanes of a warp that found none,
// side by side and for all their classes at once.
//
// A crowd at a full heap must not look at every slab for each of its requests. Two things spare it. A certificate says that
// no room has appeared for a class since somebody looked. And a number says who came before a search began: what it did not
// find was not there at an instant of their calls, so everybody who waits goes with its answer, though room may have appeared
// again by then.
//
//   E1  searches_begun is raised, by a read-modify-write, before a search's first look, which gives the search its number.
//       So a search with a larger number began after ours was called.
//   E2  certificate(class) = e + 1: somebody looked at every slab, and at the end no block of the class was free, nor a slab
//       takeable, while the epoch sum was e.   fruitless(class) = n: the same, by search n.
#pragma once

#include "../../../sync/warp_aggregate.hpp"
#include "../../../util/random.hpp"
#include "slab_table.hpp"

namespace warpheap::inline WARPHEAP_BACKEND {

/// Looks at every slab. Stateless; `table` is the heap.
class slab_search {
 public:
  static constexpr u32 none = bitmap_index::none;
  static constexpr u32 again = none - 1;
  static constexpr u32 anywhere = none;

  /// Random bits: from where we are and when.
  WARPHEAP_DEVICE static u32 random_bits() {
    return mix32(static_cast<u32>(simt::clock()) + 0x9e37'79b9u * (32 * simt::sm_id() + simt::lane_id()));
  }

  WARPHEAP_DEVICE explicit slab_search(slab_table const& table) : table_{table} {}

  /// A slab that has room for the class, or may be made one of it; `none`, and then at one instant of the call every
  /// suitable block was owned or promised to a call in progress; or `again` where only others have an answer. All lanes of
  /// `company` call together, with the same heap and each with its class.
  ///
  /// group   the lanes of `company` that have our class: all of these get one answer
  /// start   slab to begin at, or anywhere: searchers that start together would all come to the same slab
  WARPHEAP_DEVICE u32 operator()(u32 company, u32 group, u32 size_class, u32 start) const {
    if (start == anywhere) start = scale_below(random_bits(), table_.geometry().slabs());
    start = simt::shuffle(company, start, lowest_bit(company));
    // What any of us knows to have been freed, all of us see.
    simt::sync_warp(company);
    // acq_rel: what all knew to have been freed who came before us, and what we know for all who come later, each other's
    // partners (E1).
    u64 number = leads(company) ? table_.searches_begun().fetch_add(1, order::acq_rel) + 1 : 0;
    number = simt::shuffle(company, number, lowest_bit(company));
    WARPHEAP_NO_UNROLL
    for (;;) {
      u64 const epoch = simt::shuffle(company, leads(company) ? table_.epoch_sum() : 0, lowest_bit(company));
      if (u32 const answered = certain(company, group, size_class, number, epoch))
        return (answered >> simt::lane_id()) & 1 ? none : again;
      // The leader's acquire is every scanner's: a slab that somebody raised the epoch for must not look full to them.
      simt::sync_warp(company);
      u32 const seen = look(company, size_class, start);
      if (simt::ballot(company, seen == none) != 0 && is_quiet(company, epoch)) {
        if (seen == none) publish(size_class, number, epoch);
        return seen;
      }
      if (simt::ballot(company, seen < again) != 0) return seen < again ? seen : again;
      simt::pause(pause_nanoseconds);
    }
  }

 private:
  static constexpr u32 pause_nanoseconds = 128;

  WARPHEAP_DEVICE static bool leads(u32 company) { return (company & simt::lanes_below()) == 0; }

  /// The lanes whose class is known to have nothing, all of a class or none of it.
  WARPHEAP_DEVICE u32 certain(u32 company, u32 group, u32 size_class, u64 number, u64 epoch) const {
    // acquire: pairs with the release in publish(); the certificate's epoch counts happen before ours.
    bool known = table_.certificate(size_class).load(order::acquire) == epoch + 1;
    // relaxed: numbers alone; whoever believes one came before that search began (E1, E2).
    known = known || table_.fruitless(size_class).load(order::relaxed) > number;
    return simt::ballot(company, simt::shuffle(company, u32{known}, lowest_bit(group)) != 0);
  }

  /// Whether no room has appeared since the sum was `epoch`. The leader's counters are everybody's.
  WARPHEAP_DEVICE bool is_quiet(u32 company, u64 epoch) const {
    // What all of us saw comes before the sum.
    simt::sync_warp(company);
    u32 const quiet = simt::ballot(company, leads(company) && table_.epoch_sum_newest() == epoch);
    simt::sync_warp(company);
    return quiet != 0;
  }

  /// Says that there is nothing for the class (E2).
  WARPHEAP_DEVICE void publish(u32 size_class, u64 number, u64 epoch) const {
    // release: what we saw happens before whoever relies on it; pairs with the acquire in certain().
    table_.certificate(size_class).store(epoch + 1, order::release);
    table_.fruitless(size_class).store(number, order::relaxed);
  }

  /// A slab for each lane's class, or `none`: from `start` on, and around, until every lane has one. Looks without promising,
  /// since searchers would feed each other's restarts, but marks the full ones. `again` in place of `none` if not all slabs
  /// were looked at, or one was locked.
  WARPHEAP_DEVICE u32 look(u32 company, u32 size_class, u32 start) const {
    u32 const slabs = table_.geometry().slabs(), sought = simt::reduce_or(company, bit_of(size_class));
    u32 found = none;  // `again` from where it is sure that not all is seen
    WARPHEAP_NO_UNROLL
    for (u32 done = 0; done < slabs; done += popcount(company)) {
      u32 const mine = done + popcount(company & simt::lanes_below());
      u32 const ahead = start + mine, slab = ahead < slabs ? ahead : ahead - slabs;
      slab_state now = mine < slabs ? table_.load(slab) : slab_state::of(slab_kind::run, 0);
      bool const serves = now.live() && (sought & bit_of(now.size_class())) != 0;
      if (serves && !now.hard() && is_full(now)) {
        table_.try_reserve(slab, now.size_class(), 0);
        now = table_.load(slab);
      }
      // A slab of a class is worth a visit if it has room, marked or not, or is full and not marked.
      bool const worth = now.takeable() || (serves && !(now.hard() && is_full(now)));
      show(company, worth, now.takeable() ? any_class : now.size_class(), slab, size_class, found);
      bool const locked = simt::ballot(company, now.kind() == slab_kind::locked) != 0;
      u32 const with = simt::ballot(company, found < again);
      // Those who have one should not wait for the others for long.
      bool const ends = with == company || (with != 0 && slabs - done > most_steps * popcount(company));
      if ((locked || ends) && found == none) found = again;
      if (ends) break;
    }
    return found;
  }
  static constexpr u32 most_steps = 64;
  static constexpr u32 any_class = ~0u;

  WARPHEAP_HOST_DEVICE static u32 bit_of(u32 size_class) { return 1u << (size_class % 32); }
  WARPHEAP_DEVICE bool is_full(slab_state now) const {
    return now.used() >= table_.geometry().capacity(now.size_class());
  }

  /// Each slab that a lane saw with room is shown to all of them; `found` becomes one for the lane's class.
  WARPHEAP_DEVICE static void show(u32 company, bool worth, u32 its_class, u32 slab, u32 size_class, u32& found) {
    WARPHEAP_NO_UNROLL
    for (u32 rest = simt::ballot(company, worth); rest != 0; rest &= rest - 1) {
      u32 const shown_class = simt::shuffle(company, its_class, lowest_bit(rest));
      u32 const shown = simt::shuffle(company, slab, lowest_bit(rest));
      if (shown_class == any_class || shown_class == size_class) found = shown;
    }
  }

  slab_table table_;
};

}  // namespace warpheap::inline WARPHEAP_BACKEND
