// SPDX-License-Identifier: Apache-2.0
// Requests larger than a page: runs of consecutive free pages, taken greedily from the end of the
// heap, so that they meet the chunks at the front last. A run lies at the upper end of a free
// stretch, so requests of one length leave no gaps.
//
// One search at a time, under a mutex: two searches that each hold half of what the other needs
// would both fail. To serve more than one caller at a time, a search answers a round (words.hpp):
// it lists runs for all callers that wait. They claim the pages of their runs side by side, without
// the mutex (run_pages.hpp). Only requests for chunks compete for these pages.
//
//   scatter.R3  while the heap is searched, every run of the last list is claimed, or given up with
//       its pages free.
#pragma once

#include "../../../platform/backoff.hpp"
#include "../../../sync/same_object.hpp"
#include "../../../sync/warp_aggregate.hpp"
#include "run_pages.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace scatter_parts {

/// Allocates and frees runs. Stateless; `table` is the heap.
template <creation::scatter_config Config>
class runs {
 public:
  using table_type = table<Config>;
  using layout = typename table_type::layout;

  /// A run of `length` pages whose first starts at a multiple of `alignment` bytes; nullptr if at
  /// one instant of the call there was none. Any lanes.
  WARPHEAP_COLD static void* create(table_type table, u64 length, u64 alignment) {
    return runs{table}.create_together(length, alignment);
  }

  /// Frees the run that starts at `page`, whose word was read as `seen`. False if another thread
  /// did (scatter.R1).
  WARPHEAP_COLD static bool destroy(table_type table, u32 page, u64 seen) {
    return pages_type{table}.free(page, page_word{seen});
  }

  /// Searches for runs since the heap was initialized; each may have served many callers.
  WARPHEAP_DEVICE static u64 searches_made(table_type const& table) {
    return table.run_word(control::searches).load(order::relaxed);
  }

 private:
  using control = typename table_type::run_control;
  using pages_type = run_pages<Config>;
  static constexpr u32 none = pages_type::none;

  /// A caller's place in a round: the round's number, and how many runs were asked for before.
  struct place {
    u32 word = none;

    WARPHEAP_DEVICE bool is_none() const { return word == none; }
    WARPHEAP_DEVICE u32 number() const { return word >> run_round::asked_bits; }
    WARPHEAP_DEVICE u32 first() const { return word & low_mask32(run_round::asked_bits); }
  };

  WARPHEAP_DEVICE explicit runs(table_type const& table) : table_{table} {}

  WARPHEAP_DEVICE void* create_together(u64 length, u64 alignment) const {
    if (length > table_.pages()) return fail();
    lane_mask const active = lanes_with_same(simt::active_mask(), table_);
    run_request const mine{static_cast<u32>(length), alignment <= layout::page_bytes ? 0 : log2_floor(alignment)};
    u32 const page = serve(active, mine);
    return page == none ? fail() : table_.data(page);
  }

  WARPHEAP_DEVICE void* fail() const {
    table_.add_count(table_type::count::failures, 1);
    return nullptr;
  }

  WARPHEAP_DEVICE static bool leads(lane_mask active) { return (active & simt::lanes_below()) == 0; }
  WARPHEAP_DEVICE static u32 rank_in(lane_mask active) { return popcount(active & simt::lanes_below()); }
  /// The value of the lowest lane of `active`.
  template <class T>
  WARPHEAP_DEVICE static T to_all(lane_mask active, T value) {
    return simt::shuffle(active, value, lowest_bit(active));
  }

  /// The first page of a run for each lane; `none` where at one instant of the call there was none.
  /// All lanes of `active` call together, as wherever a function takes a group, each with its
  /// request.
  WARPHEAP_DEVICE u32 serve(lane_mask active, run_request const& request) const {
    u32 page = unanswered;
    place mine;
    WARPHEAP_NO_UNROLL
    for (;;) {
      lane_mask const rest = simt::ballot(active, page == unanswered);
      if (rest == 0) return page;
      // One request at a time, for all lanes that make it; all lanes search.
      run_request const wish{simt::shuffle(active, request.length, lowest_bit(rest)),
                             simt::shuffle(active, request.alignment, lowest_bit(rest))};
      lane_mask const asking = simt::ballot(active, page == unanswered && request == wish);
      // The search must see every free that a lane of the group knows.
      simt::sync_warp(active);
      u32 listed = search_next;
      if (leads(active)) listed = wait_for_answer(wish, popcount(asking), mine);
      listed = to_all(active, listed);
      if (listed == search_next) {
        search(active, wish);
        continue;
      }
      // The leader's acquire covers all lanes: the list was written before.
      simt::sync_warp(active);
      mine.word = to_all(active, mine.word);
      u32 const which = mine.first() + popcount(asking & simt::lanes_below());
      bool const asks = (asking >> simt::lane_id()) & 1;
      u32 const ours = asks && which < listed ? table_.run_list(which).load(order::relaxed) : none;
      u32 const got = pages_type{table_}.claim_listed(active, ours, wish.length);
      // A search that listed nothing is certain that there was nothing.
      if (got != none || (asks && listed == 0)) page = got;
      // scatter.R3: what all of us changed comes before the count of settled runs.
      simt::sync_warp(active);
      // release: pairs with the acquire in close_round().
      if (leads(active)) table_.runs_settled(mine.number()).fetch_add(popcount(asking), order::release);
      mine = {};
    }
  }
  static constexpr u32 unanswered = none - 1;   // no page
  static constexpr u32 search_next = none - 1;  // no number of runs

  /// Joins a round with `wanted` runs, if `mine` is no place yet, and waits for its answer. Returns
  /// how many runs were listed, or search_next: we have the mutex instead. For the leader.
  WARPHEAP_DEVICE u32 wait_for_answer(run_request const& wish, u32 wanted, place& mine) const {
    WARPHEAP_NO_UNROLL
    for (backoff wait{64, 8192};; wait.for_long()) {
      if (mine.is_none()) mine = join(wish, wanted);
      if (u32 const listed = answer_to(mine); listed != search_next) return listed;
      // A look before each exchange: thousands of exchanges would keep the owner from its own words
      // for microseconds. acquire: pairs with the release in search().
      if (table_.run_word(control::mutex).load(order::relaxed) != 0 ||
          table_.run_word(control::mutex).exchange(1, order::acquire) != 0)
        continue;
      u32 const listed = answer_to(mine);
      // release: pairs with the acquire of the thread that locks it next.
      if (listed != search_next) table_.run_word(control::mutex).store(0, order::release);
      return listed;
    }
  }

  /// How many runs were listed for a round; search_next if it has no answer yet.
  WARPHEAP_DEVICE u32 answer_to(place const& mine) const {
    // acquire: pairs with the release in search(); the list was written before.
    run_answer const last{table_.run_word(control::answer).load(order::acquire)};
    return !mine.is_none() && last.is_of(mine.number()) ? last.listed() : search_next;
  }

  /// One attempt to join the open round; no place if that round is for another request.
  WARPHEAP_DEVICE place join(run_request const& wish, u32 wanted) const {
    run_round seen{table_.open_round().load(order::relaxed)};
    if (seen.asked() == 0 && !(seen.request() == wish)) {
      // relaxed: no thread has joined.
      run_round const ours = run_round::of(seen.number(), wish);
      if (!table_.open_round().compare_exchange(seen.word, ours.word, order::relaxed, order::relaxed)) return {};
      seen = ours;
    }
    if (!(seen.request() == wish)) return {};
    // acq_rel: the search sees what all of the round knew to have been freed; pairs with the
    // exchange in close_round().
    run_round const old{table_.open_round().fetch_add(wanted, order::acq_rel)};
    if (old.request() == wish) return {old.number() << run_round::asked_bits | old.asked()};
    // Since we looked, a round for another request was opened, and we have joined it. No thread
    // will claim what it lists for us. release: as in serve().
    table_.runs_settled(old.number()).fetch_add(wanted, order::release);
    return {};
  }

  // --- The search, under the mutex ---

  /// A walk down over the pages of the heap that lists the runs it finds.
  struct walk {
    u32 at;         ///< the lowest page that was looked at
    u32 top;        ///< pages [at, top) are free, and in no run of the list
    u32 found = 0;  ///< runs of the list
  };

  /// Closes the open round, lists runs for it, publishes the answer, and frees the mutex.
  ///
  /// next   what the round that is opened asks for, unless it is changed before a thread joins
  WARPHEAP_DEVICE void search(lane_mask active, run_request const& next) const {
    run_round const closed{to_all(active, leads(active) ? close_round(next) : 0)};
    // The leader's acquire covers all lanes.
    simt::sync_warp(active);
    u32 const end = to_all(active, leads(active) ? end_of_stretch() : 0), room = table_.run_list_entries();
    walk down{end, end};
    if (closed.asked() != 0) find_runs(active, closed.request(), closed.asked() < room ? closed.asked() : room, down);
    // The list comes before the answer.
    simt::sync_warp(active);
    if (!leads(active)) return;
    pages_type{table_}.lower_used(table_.pages() - down.top);
    table_.run_word(control::searches).fetch_add(1, order::relaxed);
    u32 const number = run_round{table_.open_round().load(order::relaxed)}.number() + run_round::numbers - 1;
    // release: pairs with the acquire in answer_to().
    table_.run_word(control::answer)
        .store(run_answer::of(number % run_round::numbers, down.found).word, order::release);
    // release: pairs with the acquire of the thread that locks it next.
    table_.run_word(control::mutex).store(0, order::release);
  }

  /// scatter.R3: waits until the last round is settled, whose callers are running. Then closes the
  /// open round.
  WARPHEAP_DEVICE u64 close_round(run_request const& next) const {
    // relaxed: only searches change the number.
    u32 const number = run_round{table_.open_round().load(order::relaxed)}.number();
    u64 const asked = table_.run_word(control::last_asked).load(order::relaxed);
    // acquire: pairs with the releases of the threads that settled runs.
    WARPHEAP_NO_UNROLL
    for (backoff wait; table_.runs_settled(number + 1).load(order::acquire) != asked;) wait.for_long();
    table_.runs_settled(number + 1).store(0, order::relaxed);
    // acq_rel: we learn what all callers knew that joined; and a caller that joins the next round
    // finds the count of settled runs at 0. Pairs with the addition in join().
    run_round const closed{table_.open_round().exchange(run_round::of(number + 1, next).word, order::acq_rel)};
    table_.run_word(control::last_asked).store(closed.asked(), order::relaxed);
    return closed.word;
  }

  /// Where to begin: at the upper end of the free stretch around the hint, or at the heap's end if
  /// that takes long. A thread that frees a run from here on sets the hint anew.
  WARPHEAP_DEVICE u32 end_of_stretch() const {
    u32 end = table_.pages() -
              static_cast<u32>(table_.run_word(control::used_above).exchange(table_.pages(), order::relaxed));
    WARPHEAP_NO_UNROLL
    for (u32 looked = 0; end < table_.pages() && table_.load(end).is_free(); ++end)
      if (++looked == most_looks_up) return table_.pages();
    return end;
  }
  static constexpr u32 most_looks_up = 64;

  /// Lists runs below where the walk is or, if there are none, runs of the whole heap. Lists none
  /// only if at one instant of the search there were none.
  WARPHEAP_DEVICE void find_runs(lane_mask active, run_request const& wish, u32 most, walk& down) const {
    enum : u32 { near_the_hint, everywhere, everywhere_again };
    u64 trace = 0;  // of the first look at everything, less that of the second
    WARPHEAP_NO_UNROLL
    for (u32 look = near_the_hint;; ++look) {
      if (look == everywhere) trace = 0;
      if (look != near_the_hint) down.at = down.top = table_.pages();
      trace = 0 - trace;
      runs{table_.opaque()}.list_runs(active, wish, most, reading{look == everywhere_again}, trace, down);
      if (down.found != 0) return;
      if (look != everywhere_again) continue;
      if (simt::ballot(active, trace != 0) == 0) return;
      // Another thread made room meanwhile.
      simt::pause(pause_nanoseconds);
      look = near_the_hint;
    }
  }
  static constexpr u32 pause_nanoseconds = 128;

  /// Lists the highest runs below where the walk is, up to `most`; where they are rare, it stops at
  /// enough for a warp. If none was found, `trace` sums up what was seen (search.hpp, look()).
  /// Lanes side by side, each at a region.
  WARPHEAP_DEVICE void list_runs(lane_mask active, run_request const& wish, u32 most, reading how, u64& trace,
                                 walk& down) const {
    u32 const access_block_regions = table_.access_block_regions();
    u64 const reach = u64{looks_a_page} * most * wish.length;
    constexpr u32 enough = 32;
    u32 const begin = down.at, lowest = begin > reach ? begin - static_cast<u32>(reach) : 0;
    WARPHEAP_NO_UNROLL
    for (u32 regions = (begin + Config.region_pages - 1) / Config.region_pages; regions != 0;) {
      u32 const access_block = (regions - 1) / access_block_regions, first = access_block * access_block_regions;
      u64 const count = to_all(active, leads(active) ? table_type::read(table_.access_block(access_block), how) : 0);
      if (fill_count{count}.counts_all(table_.regions_of(access_block))) {
        if (leads(active)) trace += mix(count ^ mix(~u64{access_block}) ^ 1);
        down.at = down.top = first * Config.region_pages;
        regions = first;
        continue;
      }
      WARPHEAP_NO_UNROLL
      for (; regions > first; regions = regions - first > popcount(active) ? regions - popcount(active) : first) {
        u32 const rank = rank_in(active), region = regions - 1 - rank;
        u64 const free = rank < regions - first ? free_pages(region, how, trace) : 0;
        list_runs_of(active, regions, regions - first, free, wish, most, down);
        if (down.found == most || (down.found >= enough && down.at <= lowest)) return;
      }
    }
  }
  static constexpr u32 looks_a_page = 4;  // pages looked at for each that is wanted

  /// The free pages of a region; bit i is its page i.
  WARPHEAP_DEVICE u64 free_pages(u32 region, reading how, u64& trace) const {
    u32 const pages = table_.pages_of(region), first = region * Config.region_pages;
    u64 const count = table_type::read(table_.region(region), how);
    if (fill_count{count}.counts_all(pages)) {
      trace += mix(count ^ mix(~u64{region}));
      return 0;
    }
    u64 free = 0;
    WARPHEAP_NO_UNROLL
    for (u32 done = 0; done < pages; done += side_by_side) {
      page_word seen[side_by_side];
      for (u32 k = 0; k < side_by_side; ++k)
        seen[k] = {done + k < pages ? table_type::read(table_.page(first + done + k), how) : page_word::full_bit};
      for (u32 k = 0; k < side_by_side; ++k) {
        if (done + k >= pages) continue;
        trace += mix(u64{first + done + k} << 32 | seen[k].version());
        if (seen[k].is_free()) free |= u64{1} << (done + k);
      }
    }
    return free;
  }
  static constexpr u32 side_by_side = 2;  // loads in flight at a time

  /// Takes the walk down over the regions below `end`, at most `count`. Each lane has the `free`
  /// pages of one region.
  WARPHEAP_DEVICE void list_runs_of(lane_mask active, u32 end, u32 count, u64 free, run_request const& wish, u32 most,
                                    walk& down) const {
    u32 shown = count < popcount(active) ? count : popcount(active);
    constexpr u32 unused = 64 - Config.region_pages;
    // Most regions of most heaps are wholly free or wholly taken. If those of all lanes are alike
    // in this, they are shown as one.
    u32 const at_once =
        simt::ballot(active, free != 0) == 0 || simt::ballot(active, ~free << unused != 0) == 0 ? shown : 1;
    WARPHEAP_NO_UNROLL
    for (lane_mask rest = active; shown != 0 && down.found < most; rest &= rest - 1) {
      end -= at_once;
      shown -= at_once;
      u64 const pages = simt::shuffle(active, free, lowest_bit(rest));
      // A stretch at a time, free or not. The pages below `at` are the highest bits.
      WARPHEAP_NO_UNROLL
      for (u32 left; (left = down.at - end * Config.region_pages) != 0 && down.found < most;) {
        u64 const bits = pages << (left < Config.region_pages ? 64 - left : unused);
        bool const is_free = bits >> 63;
        u64 const others = is_free ? ~bits : bits;
        u32 const alike = others != 0 && at_once == 1 ? 63 - highest_bit(others) : left;
        down.at -= alike < left ? alike : left;
        if (is_free) list_stretch(active, wish, most, down);
        else down.top = down.at;
      }
    }
  }

  /// Lists the runs at the upper end of the free stretch in which the walk is.
  WARPHEAP_DEVICE void list_stretch(lane_mask active, run_request const& wish, u32 most, walk& down) const {
    WARPHEAP_NO_UNROLL
    while (down.found < most && down.top - down.at >= wish.length) {
      u32 count = 1;
      if (wish.alignment == 0) {
        if (down.top - down.at >= 2 * u64{wish.length}) count = (down.top - down.at) / wish.length;
        count = count < most - down.found ? count : most - down.found;
      } else {
        u32 const above = pages_above_aligned(down.top - wish.length, wish.alignment);
        if (above > down.top - wish.length - down.at) return;
        down.top -= above;
      }
      WARPHEAP_NO_UNROLL
      for (u32 i = rank_in(active); i < count; i += popcount(active))
        table_.run_list(down.found + i).store(down.top - (i + 1) * wish.length, order::relaxed);
      down.found += count;
      down.top -= count * wish.length;
    }
  }

  WARPHEAP_DEVICE u32 pages_above_aligned(u32 page, u32 alignment) const {
    u64 const above = reinterpret_cast<u64>(table_.data(page)) & low_mask(alignment);
    return static_cast<u32>(above >> layout::page_log2);
  }

  table_type table_;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::scatter_parts
