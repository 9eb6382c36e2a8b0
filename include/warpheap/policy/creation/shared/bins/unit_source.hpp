// SPDX-License-Identifier: Apache-2.0
// Units: promises of blocks of one class in one arena. Where they come from, and how a search
// proves that there are none.
//
// A request waits at the semaphore of its multiprocessor's arena. It gets units, or is elected to
// make bins, which it does with the lanes that ask with it. If there are no pages, neither in the
// arena's chunks nor at the supply, it withdraws the promise and searches the other arenas: for
// units, for pages, and for bins of other classes that are empty.
//
// A search that finds nothing proves it in these steps:
//
//   1. watch the pages and the class (bins.W1);
//   2. ask the supply for a chunk: nullptr;
//   3. visit every arena by read-modify-writes: its semaphore has no units, nothing is idle or in
//      limbo, no pages are free;
//   4. ask the supply again, for what came back during the visit;
//   5. both watches are unchanged: leave an exhaustion note, by which others answer at once.
//
//   bins.V1  no thread holds units without blocks while it waits for lanes of its warp that may be
//       searching: a search waits for threads whose units keep an empty bin from being reclaimed.
//   bins.V2  a search that found something idle which could not be reclaimed answers nothing, and
//       looks again.
//   bins.V3  an exhaustion note holds as long as both watches are what they were: a thread that
//       makes room raises one of them.
//
// Why `nullptr` is exact: docs/design/ualloc.md.
#pragma once

#include "recycler.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace bins {

/// Units of a class in an arena; 0 units: memory is out.
struct unit_grant {
  u32 arena = 0;
  u32 units = 0;
};

template <class Layout, class Supply, class Faults>
class unit_source {
  using recycler_type = recycler<Layout, Supply, Faults>;
  using table_type = far_table<Layout>;

 public:
  WARPHEAP_DEVICE unit_source(table<Layout> const& table, u32 size_class) : table_{table}, size_class_{size_class} {}

  /// Between 1 and `wanted` units, or none: then at one instant of the call every suitable block
  /// was owned, or promised to a call in progress. All lanes of the group call with the same
  /// `wanted`, at least 1, and hold the result.
  WARPHEAP_DEVICE unit_grant obtain(lane_group const& group, u32 wanted) const {
    u32 const arena = broadcast(group, table_.my_arena());
    u32 const bins = Layout::batch_for(size_class_, wanted);
    u32 answer = 0;
    if (group.leads) answer = ask(arena, wanted, bins);
    answer = broadcast(group, answer);
    // Every lane sees what the leader acquired; the shuffle orders nothing.
    simt::sync_warp(group.mask);
    if (answer <= wanted) return {arena, answer};
    u32 units = 0;
    if (answer == makes_bins) units = make_batch(table_.as_far(), group.mask, size_class_, arena, wanted);
    return units != 0 ? unit_grant{arena, units}
                      : search_together(table_.as_far(), group.mask, size_class_, arena, wanted);
  }

 private:
  /// Answers that are no number of units.
  static constexpr u32 makes_bins = ~u32{0}, refused = makes_bins - 1;

  /// Between 1 and `wanted` units of the arena's semaphore, or one of these answers.
  WARPHEAP_DEVICE u32 ask(u32 arena, u32 wanted, u32 bins) const {
    auto semaphore = table_.semaphore(arena, size_class_);
    if (semaphore.available() < wanted && is_known_exhausted(table_, size_class_)) return refused;
    u32 const batch = bins * Layout::capacity(size_class_);
    if constexpr (Layout::config.shares_requests) {
      some_units const got = semaphore.wait_for_some(wanted, batch);
      if (got.units_reappeared) Faults::tell_of_units(table_.class_watch(size_class_));
      return got.units != 0 ? got.units : makes_bins;
    } else {
      return semaphore.wait(wanted, batch) == wait_result::acquired ? wanted : makes_bins;
    }
  }

  /// Whether the exhaustion note of the class holds (bins.V3).
  template <class Place>
  WARPHEAP_DEVICE static bool is_known_exhausted(basic_table<Layout, Place> const& table, u32 size_class) {
    // acquire: pairs with the release in search(); what the thread that left the note knew of the
    // watches, we know.
    u64 const seen = table.exhausted_at(size_class).load(order::acquire);
    return seen != 0 &&
           seen == room_watch_word::exhaustion_of(table.pages_watch().look(), table.class_watch(size_class).look());
  }

  /// Makes the bins that the semaphore waits for; returns how many units are ours. All lanes of the
  /// group call.
  WARPHEAP_COLD static u32 make_batch(table_type table, lane_mask mask, u32 size_class, u32 arena, u32 wanted) {
    lane_group const group = group_of(mask);
    u32 const bins = Layout::batch_for(size_class, wanted);
    u32 const made = make_bins(table, group, arena, size_class, bins, chunk_use::existing_or_new);
    u32 units = 0;
    if (group.leads) units = settle(table, arena, size_class, wanted, bins, made);
    if (group.leads && made != 0) page_store<Layout, Supply>{table, arena}.made(made);
    units = broadcast(group, units);
    simt::sync_warp(mask);
    return units;
  }

  WARPHEAP_DEVICE static unit_grant search_together(table_type table, lane_mask mask, u32 size_class, u32 home,
                                                    u32 wanted) {
    lane_group const group = group_of(mask);
    unit_grant grant{};
    if (group.leads) grant = search(table, size_class, home, wanted);
    grant.arena = broadcast(group, grant.arena);
    grant.units = broadcast(group, grant.units);
    simt::sync_warp(mask);
    return grant;
  }

  /// Settles the promise of `bins` bins, of which `made` were made, for a request of `wanted`
  /// units. Returns how many units are ours.
  WARPHEAP_DEVICE static u32 settle(table_type table, u32 arena, u32 size_class, u32 wanted, u32 bins, u32 made) {
    u32 const capacity = Layout::capacity(size_class), batch = bins * capacity;
    if (made == 0) return table.semaphore(arena, size_class).withdraw(wanted, batch) ? wanted : 0;
    u32 const kept = wanted < made * capacity ? wanted : made * capacity;
    recycler_type::signal(table, arena, size_class, made * capacity - kept, batch - wanted);
    return kept;
  }

  /// Makes up to `wanted` bins, at most one a lane, and lists them. Returns how many there were
  /// pages for. All lanes of the group call.
  WARPHEAP_DEVICE static u32 make_bins(table_type table, lane_group const& group, u32 arena, u32 size_class, u32 wanted,
                                       chunk_use use) {
    static_assert(Layout::capacity(Layout::classes - 1) >= 1);
    // A request is of one unit a lane, so there are at least as many lanes as bins.
    bool const makes = group.rank < wanted;
    lane_mask const makers = simt::ballot(group.mask, makes);
    u32 page = 0;
    if (makes) page = page_store<Layout, Supply>{table, arena}.take(group_of(makers), size_class, use);
    if (page != 0) set_up(table, page, arena, size_class);
    u32 const made = popcount(simt::ballot(group.mask, page != 0));
    // Linked before the leader signals (bins.Y1): the barrier orders it.
    simt::sync_warp(group.mask);
    // A bin of which no block is taken is idle from the start (bins.A4).
    if (group.leads && made != 0) recycler_type::note_idle(table, arena, size_class);
    return made;
  }

  WARPHEAP_DEVICE static void set_up(table_type table, u32 page, u32 arena, u32 size_class) {
    bin_view const bin = table.bin(page);
    // relaxed: other threads find the bin only through the list, which releases.
    bin.linked().store(0, order::relaxed);
    bin.number().store(page, order::relaxed);
    for (u32 word = 0; word < Layout::words(size_class); ++word) bin.bits(word).store(0, order::relaxed);
    bin.life().store(bin_life::of({arena, size_class}, Layout::capacity(size_class)), order::relaxed);
    bin_list<Layout, far_place>{table, arena, size_class}.add(page);
  }

  /// Makes a bin in any arena, and takes up to `wanted` units of it. One lane alone, without a
  /// promise.
  WARPHEAP_COLD static unit_grant make_one(table_type table, u32 arena, u32 size_class, u32 wanted, chunk_use use) {
    lane_group const alone = group_of(lane_bit(simt::lane_id()));
    if (make_bins(table, alone, arena, size_class, 1, use) == 0) return {};
    u32 const capacity = Layout::capacity(size_class), kept = wanted < capacity ? wanted : capacity;
    recycler_type::signal(table, arena, size_class, capacity - kept);
    page_store<Layout, Supply>{table, arena}.made(1);
    return {arena, kept};
  }

  /// Takes up to `wanted` units of an arena's semaphore, which was seen to have `available`. None
  /// if they are gone.
  WARPHEAP_DEVICE static unit_grant take_units(table_type table, u32 arena, u32 size_class, u32 wanted, u64 available) {
    u32 const asked = available < wanted ? static_cast<u32>(available) : wanted;
    if (asked == 0 || !table.semaphore(arena, size_class).try_wait(asked)) return {};
    return {arena, asked};
  }

  /// Looks everywhere. Any lane alone, holding nothing (bins.V1).
  WARPHEAP_COLD static unit_grant search(table_type table, u32 size_class, u32 home, u32 wanted) {
    WARPHEAP_NO_UNROLL
    for (backoff nap;; nap.while_working()) {
      if (is_known_exhausted(table, size_class)) return {};
      unit_grant found = look_around(table, size_class, home, wanted);
      if (found.units != 0) return found;
      u64 const pages = table.pages_watch().watch(), blocks = table.class_watch(size_class).watch();
      bool certain = true;
      found = make_one(table, home, size_class, wanted, chunk_use::existing_or_new);
      for (u32 i = 0; i < table.arenas() && found.units == 0; ++i)
        found = visit(table, size_class, (home + i) % table.arenas(), wanted, certain);
      if (found.units == 0) found = make_one(table, home, size_class, wanted, chunk_use::existing_or_new);
      if (found.units != 0) return found;
      if (!certain || !table.pages_watch().unchanged(pages) || !table.class_watch(size_class).unchanged(blocks))
        continue;
      // release: a thread that relies on the exhaustion note knows what we saw; pairs with the
      // acquire in is_known_exhausted().
      table.exhausted_at(size_class).store(room_watch_word::exhaustion_of(pages, blocks), order::release);
      return {};
    }
  }

  /// Takes units or pages of any arena, if plain loads find some. To find none proves nothing.
  WARPHEAP_DEVICE static unit_grant look_around(table_type table, u32 size_class, u32 home, u32 wanted) {
    u32 const least = Layout::pages(size_class);
    WARPHEAP_NO_UNROLL
    for (u32 i = 0; i < table.arenas(); ++i) {
      u32 const arena = (home + i) % table.arenas();
      unit_grant found = take_units(table, arena, size_class, wanted, table.semaphore(arena, size_class).available());
      // relaxed: a hint.
      u32 const pages = room_word::free_pages(table.room(arena).load(order::relaxed));
      if (found.units == 0 && pages >= least) found = make_one(table, arena, size_class, wanted, chunk_use::existing);
      if (found.units != 0) return found;
    }
    return {};
  }

  /// Takes what an arena has, by read-modify-writes (bins.W1). `certain` becomes false if the arena
  /// may have something that we cannot get yet.
  WARPHEAP_DEVICE static unit_grant visit(table_type table, u32 size_class, u32 arena, u32 wanted, bool& certain) {
    auto semaphore = table.semaphore(arena, size_class);
    for (u64 there = semaphore.available_newest(); there != 0; there = semaphore.available_newest()) {
      unit_grant const found = take_units(table, arena, size_class, wanted, there);
      if (found.units != 0) return found;
    }
    // acquire, release: bins.W1.
    u64 room = table.room(arena).fetch_add(0, order::acq_rel);
    if (room_word::idle_classes(room) != 0 || room_word::in_limbo(room) != 0) {
      bool const all = recycler_type::sweep(table, arena);
      room = table.room(arena).fetch_add(0, order::acq_rel);
      certain = certain && all && room_word::in_limbo(room) == 0;
    }
    if (room_word::free_pages(room) < Layout::pages(size_class)) return {};
    return make_one(table, arena, size_class, wanted, chunk_use::existing);
  }

  table<Layout> table_;
  u32 size_class_;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::bins
