// Requests larger than a page: runs of consecutive free pages, greedily from the end of the heap, so that they meet the
// chunks at the front last. A run lies at the upper end of a free stretch, so requests of one length leave no gaps.
//
// One search at a time, under a mutex: two searches that each hold half of what the other needs would both fail. A search
// finds runs for many callers: it lists them, takes what its own warp wants, and offers the others the rest (run_offer.hpp).
// They draw by one addition, and each claims the pages of its run without the mutex; nobody else wants them but chunks. A
// list is twice as long as the last one if that was used up. Callers that find nothing on offer wait for the search under
// way, or make one. A search that found nothing speaks for all that waited while it began: its number tells.
//
//   R1  the word of a run's first page says how many pages it has; who changes it to that of an inner page frees the run.
//   R2  the words of the others are those of inner pages from before the first is written until after it is changed.
//   R3  while the heap is searched, no run is on offer, and every run that was drawn is claimed or its pages are free again.
#pragma once

#include "../../../platform/backoff.hpp"
#include "../../../sync/same_object.hpp"
#include "../../../sync/warp_aggregate.hpp"
#include "page_table.hpp"
#include "run_offer.hpp"

namespace warpheap::inline WARPHEAP_BACKEND {

/// Allocates and frees runs. Stateless; `table` is the heap.
template <creation::scatter_config Config>
class page_runs {
 public:
  using table_type = page_table<Config>;
  using layout = typename table_type::layout;

  /// A run of `length` pages whose first starts at a multiple of `alignment` bytes; nullptr if at one instant of the call
  /// there was none. Any lanes.
  WARPHEAP_COLD static void* create(table_type table, u64 length, u64 alignment) {
    return page_runs{table}.create_together(length, alignment);
  }

  /// Frees the run that starts at `page`, whose word was read as `seen`. False if somebody else did (R1).
  WARPHEAP_COLD static bool destroy(table_type table, u32 page, u64 seen) {
    return page_runs{table}.destroy_run(page, page_word{seen});
  }

  /// Searches for runs since the heap was initialized; each may have served many callers.
  WARPHEAP_DEVICE static u64 searches_made(table_type const& table) {
    return table.run_word(searches).load(order::relaxed);
  }

 private:
  static constexpr u32 none = ~0u;
  // Words of control: the mutex; the number of the last search of the whole heap; number of the last fruitless one and its
  // length; how many pages at the end hold none that is free, a hint; searches.
  static constexpr u32 mutex = 0, begun = 1, fruitless = 2, used_above = 3, searches = 4;

  /// What is asked for.
  struct run_request {
    u32 length;     ///< pages
    u64 alignment;  ///< of the first page, in bytes; 1: any page will do

    WARPHEAP_DEVICE bool operator==(run_request const& other) const {
      return length == other.length && alignment == other.alignment;
    }
    /// Whether runs on offer may serve it.
    WARPHEAP_DEVICE bool may_draw() const { return alignment == 1; }
  };

  /// What the leader of a warp found out for it: runs of the list that are now ours; or that it has the mutex, or that there
  /// is no run.
  struct turn {
    enum : u32 { drawn, locked, refused };
    u32 what = refused;
    u32 first = 0;  ///< in the list
    u32 runs = 0;   ///< that we drew, and have to settle
  };

  WARPHEAP_DEVICE explicit page_runs(table_type const& table) : table_{table} {}

  WARPHEAP_DEVICE void* create_together(u64 length, u64 alignment) const {
    if (length > table_.pages()) return fail();
    u32 const company = lanes_with_same(simt::active_mask(), table_);
    run_request const mine{static_cast<u32>(length), alignment <= layout::page_bytes ? 1 : alignment};
    u32 page = none;
    WARPHEAP_NO_UNROLL
    for (u32 rest = company; rest != 0;) {
      // One request at a time, for as many as make it; all lanes look for it.
      run_request const wish{simt::shuffle(company, mine.length, lowest_bit(rest)),
                             simt::shuffle(company, mine.alignment, lowest_bit(rest))};
      u32 const asking = simt::ballot(company, mine == wish) & rest;
      u32 const got = serve(company, asking, wish);
      if (got != none) page = got;
      rest &= ~asking;
    }
    return page == none ? fail() : table_.data(page);
  }

  WARPHEAP_DEVICE void* fail() const {
    table_.add_count(table_type::count::failures, 1);
    return nullptr;
  }

  WARPHEAP_DEVICE static bool leads(u32 company) { return (company & simt::lanes_below()) == 0; }
  WARPHEAP_DEVICE static u32 rank_in(u32 company) { return popcount(company & simt::lanes_below()); }
  /// The value of the lowest lane of `company`.
  template <class T>
  WARPHEAP_DEVICE static T to_all(u32 company, T value) {
    return simt::shuffle(company, value, lowest_bit(company));
  }

  /// A run for each lane of `asking`, the first page; `none` to the others, and where at one instant of the call there was no
  /// run left. All lanes of `company` call together, as in all that takes a group.
  WARPHEAP_DEVICE u32 serve(u32 company, u32 asking, run_request const& wish) const {
    u32 page = none, misses = 0;
    // A read-modify-write, which reads the newest: a search with a larger number began after this. release: and it sees what
    // we know to have been freed; pairs with the acquire where it begins. What any of us knows, all of us do.
    simt::sync_warp(company);
    u64 const arrived = leads(company) ? table_.run_word(begun).fetch_add(0, order::release) : 0;
    WARPHEAP_NO_UNROLL
    for (;;) {
      turn now;
      if (leads(company)) now = next_turn(wish, popcount(asking), arrived, misses >= most_misses);
      now.what = to_all(company, now.what);
      // The leader's acquire is everybody's: the list was written before, and who drew of an older one is done with it.
      simt::sync_warp(company);
      if (now.what == turn::locked) now = search(company, arrived, wish, popcount(asking));
      if (now.what == turn::refused) return page;
      now = {now.what, to_all(company, now.first), to_all(company, now.runs)};
      u32 const rank = rank_in(asking);
      bool const ours = (asking >> simt::lane_id()) & 1 && rank < now.runs;
      u32 const drawn = ours ? table_.run_list(now.first + rank).load(order::relaxed) : none;
      u32 const got = claim_drawn(company, drawn, wish.length);
      if (got != none) page = got;
      // R3: what all of us changed comes before.
      simt::sync_warp(company);
      // release: pairs with the acquire in withdraw_offer().
      if (leads(company)) table_.runs_settled().fetch_add(now.runs, order::release);
      u32 const served = simt::ballot(company, got != none);
      asking &= ~served;
      if (asking == 0) return page;
      misses = served == 0 ? misses + 1 : 0;
    }
  }
  static constexpr u32 most_misses = 8;  // draws in a row that chunks were faster at, before the list counts as old

  /// Draws `wanted` runs, or fewer if fewer are on offer; else locks the mutex, or learns that there is none. The leader's.
  ///
  /// outdated   what is on offer has been taken by chunks
  WARPHEAP_DEVICE turn next_turn(run_request const& wish, u32 wanted, u64 arrived, bool outdated) const {
    WARPHEAP_NO_UNROLL
    for (backoff wait{64, 8192};; wait.pause()) {
      // relaxed: a hint; the addition tells.
      if (!outdated && is_on_offer(wish)) {
        // acquire: pairs with the release of who made the offer.
        run_offer const old{table_.run_offer_word().fetch_add(wanted, order::acquire)};
        u32 const runs = old.granted(wanted);
        if (runs != 0 && old.length() == wish.length) return {turn::drawn, old.taken(), runs};
        // Somebody offers another length since we looked, and the next search finds these again.
        if (runs != 0) table_.runs_settled().fetch_add(runs, order::release);
      }
      if (is_known_fruitless(arrived, wish)) return {};
      // A look before each exchange: thousands that exchange would keep the owner from its own words for microseconds.
      if (table_.run_word(mutex).load(order::relaxed) != 0) {
        outdated = false;  // somebody searches
        continue;
      }
      // acquire: pairs with the release in search().
      if (table_.run_word(mutex).exchange(1, order::acquire) != 0) continue;
      if (outdated || !is_on_offer(wish)) return {turn::locked, 0, 0};
      // Somebody has searched since we looked.
      table_.run_word(mutex).store(0, order::release);
    }
  }

  WARPHEAP_DEVICE bool is_on_offer(run_request const& wish) const {
    return wish.may_draw() && run_offer{table_.run_offer_word().load(order::relaxed)}.has(wish.length);
  }

  /// Whether a search that began after search number `arrived` found no run of this length or a shorter one.
  WARPHEAP_DEVICE bool is_known_fruitless(u64 arrived, run_request const& wish) const {
    // relaxed: numbers alone; whoever believes one came before the search began.
    u64 const seen = table_.run_word(fruitless).load(order::relaxed);
    return wish.alignment == 1 && static_cast<i32>(static_cast<u32>(seen >> 32) - static_cast<u32>(arrived)) > 0 &&
           static_cast<u32>(seen) <= wish.length;
  }

  // --- The search, under the mutex ---

  /// A walk down over the pages of the heap that lists the runs it finds.
  struct walk {
    u32 at;         ///< the lowest page that was looked at
    u32 top;        ///< pages [at, top) are free, and in no run of the list
    u32 found = 0;  ///< runs of the list
  };

  /// Lists runs, as many as are `wanted` if there are so many, offers what is more than these, and frees the mutex. Returns the
  /// caller's, or that there were none.
  WARPHEAP_DEVICE turn search(u32 company, u64 arrived, run_request const& wish, u32 wanted) const {
    u32 most = leads(company) ? runs_to_list(withdraw_offer(), wish, wanted) : 0;
    // R3: those who settled acquired nothing for us that the leader has not.
    simt::sync_warp(company);
    most = to_all(company, most);
    u64 const used = leads(company) ? table_.run_word(used_above).load(order::relaxed) : 0;
    u32 const end = to_all(company, leads(company) ? end_of_stretch(static_cast<u32>(used)) : 0);
    walk down{end, end};
    u64 unused_trace = 0;
    bool certain = false;
    list_runs(company, wish, wanted, most, false, unused_trace, down);
    WARPHEAP_NO_UNROLL
    while (down.found == 0) {
      search_everywhere(company, arrived, wish, wanted, most, down, certain);
      if (certain) break;
      if (down.found == 0) simt::pause(pause_nanoseconds);
    }
    u32 const ours = down.found < wanted ? down.found : wanted;
    // The list comes before the offer.
    simt::sync_warp(company);
    if (leads(company)) {
      u64 expected = used;
      // Not if a run was freed above meanwhile, which moved it.
      table_.run_word(used_above).compare_exchange(expected, table_.pages() - down.top, order::relaxed, order::relaxed);
      table_.run_word(searches).fetch_add(1, order::relaxed);
      table_.runs_settled().store(0, order::relaxed);
      // release: pairs with the acquire of who draws.
      table_.run_offer_word().store(run_offer::of(wish.may_draw() ? wish.length : 0, down.found, ours).word,
                                    order::release);
      // release: pairs with the acquire of who locks it next.
      table_.run_word(mutex).store(0, order::release);
    }
    return {certain ? turn::refused : turn::drawn, 0, ours};
  }
  static constexpr u32 pause_nanoseconds = 128;

  /// R3: takes the runs off that are on offer, and waits until those that were drawn are settled; their owners are running.
  /// Returns the last offer.
  WARPHEAP_DEVICE run_offer withdraw_offer() const {
    run_offer const last{table_.run_offer_word().exchange(0, order::acq_rel)};
    // acquire: pairs with the releases of those who settled.
    WARPHEAP_NO_UNROLL
    for (backoff wait; table_.runs_settled().load(order::acquire) != last.taken();) wait.pause();
    // Those that nobody drew lie above the hint.
    if (last.taken() < last.count())
      lower_used(table_.pages() - table_.run_list(last.taken()).load(order::relaxed) - last.length());
    return last;
  }

  /// Twice as many as the last list had, if that was used up, or as were asked for.
  WARPHEAP_DEVICE u32 runs_to_list(run_offer last, run_request const& wish, u32 wanted) const {
    u32 most = wanted;
    if (wish.may_draw() && last.length() == wish.length) {
      u32 const grown = last.taken() == last.count() ? 2 * last.count() : 0;
      most = grown > last.drawn() ? grown : last.drawn();
    }
    u32 const room = table_.run_list_entries();
    most = most < wanted ? wanted : most;
    return most < room ? most : room;
  }

  /// The upper end of the free stretch that lies around the hint; if that takes long, the heap's end.
  WARPHEAP_DEVICE u32 end_of_stretch(u32 used) const {
    u32 end = table_.pages() - used;
    WARPHEAP_NO_UNROLL
    for (u32 looked = 0; end < table_.pages() && table_.load(end).is_free(); ++end)
      if (++looked == most_looks_up) return table_.pages();
    return end;
  }
  static constexpr u32 most_looks_up = 64;

  /// Lists runs of the whole heap. None if `certain` that there are none, or if somebody made room meanwhile.
  WARPHEAP_DEVICE void search_everywhere(u32 company, u64 arrived, run_request const& wish, u32 wanted, u32 most,
                                         walk& down, bool& certain) const {
    certain = to_all(company, u32{leads(company) && is_known_fruitless(arrived, wish)});
    if (certain) return;
    // acquire: what all knew who came before.
    u64 const number = leads(company) ? table_.run_word(begun).fetch_add(1, order::acquire) + 1 : 0;
    simt::sync_warp(company);
    u64 trace = 0;  // of the first look, less that of the second
    WARPHEAP_NO_UNROLL
    for (u32 look = 0; look < 2 && down.found == 0; ++look) {
      trace = 0 - trace;
      down = {table_.pages(), table_.pages()};
      page_runs{table_.afresh()}.list_runs(company, wish, wanted, most, look == 1, trace, down);
    }
    certain = down.found == 0 && simt::ballot(company, trace != 0) == 0;
    if (certain && leads(company) && wish.alignment == 1)
      table_.run_word(fruitless).store(number << 32 | wish.length, order::relaxed);
  }

  /// Lists the highest runs from where the walk is, up to `most`; fewer, but the `wanted`, where they are rare. `trace` is of
  /// what was seen (page_search.hpp, look()), if none was found. Lanes side by side, each at a region.
  WARPHEAP_DEVICE void list_runs(u32 company, run_request const& wish, u32 wanted, u32 most, bool newest, u64& trace,
                                 walk& down) const {
    u32 const access_block_regions = table_.access_block_regions();
    u64 const far = u64{looks_a_page} * most * wish.length;
    u32 const begin = down.at, lowest = begin > far ? begin - static_cast<u32>(far) : 0;
    WARPHEAP_NO_UNROLL
    for (u32 regions = (begin + Config.region_pages - 1) / Config.region_pages; regions != 0;) {
      u32 const access_block = (regions - 1) / access_block_regions, first = access_block * access_block_regions;
      u64 const count = to_all(company, leads(company) ? read(table_.access_block(access_block), newest) : 0);
      if (fill_count{count}.counts_all(table_.regions_of(access_block))) {
        if (leads(company)) trace += mix(count ^ mix(~u64{access_block}) ^ 1);
        down.at = down.top = first * Config.region_pages;
        regions = first;
        continue;
      }
      WARPHEAP_NO_UNROLL
      for (; regions > first; regions = regions - first > popcount(company) ? regions - popcount(company) : first) {
        u32 const rank = rank_in(company), region = regions - 1 - rank;
        u64 const free = rank < regions - first ? free_pages(region, newest, trace) : 0;
        list_runs_of(company, regions, regions - first, free, wish, most, down);
        if (down.found == most || (down.found >= wanted && down.at <= lowest)) return;
      }
    }
  }
  static constexpr u32 looks_a_page = 4;  // pages looked at for each that is wanted, while runs are listed for others

  /// The free pages of a region; bit i is its page i.
  WARPHEAP_DEVICE u64 free_pages(u32 region, bool newest, u64& trace) const {
    u32 const pages = table_.pages_of(region), first = region * Config.region_pages;
    u64 const count = read(table_.region(region), newest);
    if (fill_count{count}.counts_all(pages)) {
      trace += mix(count ^ mix(~u64{region}));
      return 0;
    }
    u64 free = 0;
    WARPHEAP_NO_UNROLL
    for (u32 done = 0; done < pages; done += side_by_side) {
      page_word seen[side_by_side];
      for (u32 k = 0; k < side_by_side; ++k)
        seen[k] = {done + k < pages ? read(table_.page(first + done + k), newest) : page_word::full_bit};
      for (u32 k = 0; k < side_by_side; ++k) {
        if (done + k >= pages) continue;
        trace += mix(u64{first + done + k} << 32 | seen[k].version());
        if (seen[k].is_free()) free |= u64{1} << (done + k);
      }
    }
    return free;
  }
  static constexpr u32 side_by_side = 4;  // loads in flight at a time

  /// Takes the walk down over the regions below `end`, at most `count`: each lane has the free pages of one.
  WARPHEAP_DEVICE void list_runs_of(u32 company, u32 end, u32 count, u64 free, run_request const& wish, u32 most,
                                    walk& down) const {
    u32 const with_free = simt::ballot(company, free != 0);
    if (with_free == 0) {
      u32 const shown = count < popcount(company) ? count : popcount(company);
      down.at = down.top = (end - shown) * Config.region_pages;
      return;
    }
    WARPHEAP_NO_UNROLL
    for (u32 rest = company; rest != 0 && count != 0 && down.found < most; rest &= rest - 1, --count) {
      u32 const first = --end * Config.region_pages;
      u64 const pages = simt::shuffle(company, free, lowest_bit(rest));
      // A stretch at a time, free or not: the pages below `at` are the highest bits.
      WARPHEAP_NO_UNROLL
      while (down.at > first && down.found < most) {
        u32 const left = down.at - first;
        u64 const bits = pages << (64 - left);
        bool const is_free = bits >> 63;
        u64 const others = is_free ? ~bits : bits;
        u32 const alike = others != 0 ? 63 - highest_bit(others) : 64;
        down.at -= alike < left ? alike : left;
        if (is_free) list_stretch(company, wish, most, down);
        else down.top = down.at;
      }
    }
  }

  /// Lists the runs that lie at the upper end of the free stretch which the walk is in.
  WARPHEAP_DEVICE void list_stretch(u32 company, run_request const& wish, u32 most, walk& down) const {
    WARPHEAP_NO_UNROLL
    while (down.found < most && down.top - down.at >= wish.length) {
      u32 runs = 1;
      if (wish.alignment == 1) {
        runs = (down.top - down.at) / wish.length;
        runs = runs < most - down.found ? runs : most - down.found;
      } else {
        u32 const above = pages_above_aligned(down.top - wish.length, wish.alignment);
        if (above > down.top - wish.length - down.at) return;
        down.top -= above;
      }
      WARPHEAP_NO_UNROLL
      for (u32 i = rank_in(company); i < runs; i += popcount(company))
        table_.run_list(down.found + i).store(down.top - (i + 1) * wish.length, order::relaxed);
      down.found += runs;
      down.top -= runs * wish.length;
    }
  }

  WARPHEAP_DEVICE u32 pages_above_aligned(u32 page, u64 alignment) const {
    u64 const above = reinterpret_cast<u64>(table_.data(page)) & (alignment - 1);
    return static_cast<u32>(above >> layout::page_log2);
  }

  // As in page_search.hpp.
  WARPHEAP_DEVICE static u64 read(atomic_ref<u64> word, bool newest) {
    return newest ? word.fetch_or(0, order::relaxed) : word.load(order::relaxed);
  }

  // --- The pages of a run ---

  /// Claims the runs that lanes of `company` drew: short ones each lane its own, long ones one after the other and all lanes
  /// together. `drawn` is a first page, or `none`; returns it, or `none` where a chunk was faster.
  WARPHEAP_DEVICE u32 claim_drawn(u32 company, u32 drawn, u32 length) const {
    bool const alone = length <= most_alone;
    lane_group const group = alone ? group_of(1u << simt::lane_id()) : group_of(company);
    u32 mine = none;
    WARPHEAP_NO_UNROLL
    for (u32 rest = alone ? u32{drawn != none} : simt::ballot(company, drawn != none); rest != 0; rest &= rest - 1) {
      u32 const first = alone ? drawn : simt::shuffle(company, drawn, lowest_bit(rest));
      bool const good = claim(group, first, length);
      if (good && first == drawn) mine = drawn;
    }
    return mine;
  }
  static constexpr u32 most_alone = 32;  // pages

  /// Makes the pages of a run ours; true if all were free, else those that we took are free again. Lanes side by side.
  WARPHEAP_DEVICE bool claim(lane_group const& group, u32 first, u32 length) const {
    bool const alone = group.size == 1;
    u32 const end = first + length;
    u32 page = first + group.rank;
    bool good = true;
    WARPHEAP_NO_UNROLL
    for (; good && page < end; page += group.size) {
      page_word const seen = table_.load(page);
      u64 expected = seen.word;
      // acquire: the last owners' writes happen before ours; pairs with the releases of those who freed the page.
      good = seen.is_free() &&
             table_.page(page).compare_exchange(expected, inner(seen).word, order::acquire, order::relaxed);
    }
    if (alone ? !good : simt::ballot(group.mask, !good) != 0) {
      u32 const mine = good ? page : page - group.size;  // the first that is not ours
      WARPHEAP_NO_UNROLL
      for (page = first + group.rank; page < mine; page += group.size) free_page(page);
      return false;
    }
    u32 const first_region = first / Config.region_pages, last_region = (end - 1) / Config.region_pages;
    WARPHEAP_NO_UNROLL
    for (u32 region = first_region + group.rank; region <= last_region; region += group.size)
      table_.count_full(region, pages_inside(region, first, end));
    // R2, F1: the run can be freed from here on. What others of us did comes before.
    if (!alone) simt::sync_warp(group.mask);
    // relaxed: the caller hands the address on as it hands on the contents (R1).
    if (group.leads) table_.page(first).fetch_add(head(length) - inner({}).word, order::relaxed);
    return true;
  }

  WARPHEAP_DEVICE bool destroy_run(u32 first, page_word seen) const {
    u32 const length = seen.low();
    u64 expected = seen.word;
    // acq_rel: one thread wins; the owner's writes are released by the fence below.
    if (!table_.page(first).compare_exchange(expected, inner(seen).word, order::acq_rel, order::relaxed)) return false;
    WARPHEAP_NO_UNROLL
    for (u32 region = first / Config.region_pages; region <= (first + length - 1) / Config.region_pages; ++region)
      table_.withdraw_full(region, pages_inside(region, first, first + length));
    recycling_fence();  // once for all pages, in place of a release of each
    WARPHEAP_NO_UNROLL
    for (u32 page = first; page != first + length; ++page) free_page(page);
    lower_used(table_.pages() - first - length);
    return true;
  }

  /// There are free pages below the last `above`.
  WARPHEAP_DEVICE void lower_used(u64 above) const {
    // relaxed: a hint.
    u64 used = table_.run_word(used_above).load(order::relaxed);
    while (used > above && !table_.run_word(used_above).compare_exchange(used, above, order::relaxed, order::relaxed)) {
    }
  }

  /// An inner page of ours becomes free; S4.
  WARPHEAP_DEVICE void free_page(u32 page) const {
    // relaxed: after recycling_fence(), or nothing was written to it.
    table_.page(page).fetch_add(page_word::version_unit - inner({}).word, order::relaxed);
  }

  WARPHEAP_HOST_DEVICE static page_word inner(page_word seen) { return seen.with(page_word::inner_units, 0, true); }
  WARPHEAP_HOST_DEVICE static u64 head(u32 length) { return page_word{}.with(page_word::run_units, length, true).word; }

  /// Pages of a region that lie in [first, end).
  WARPHEAP_HOST_DEVICE static u32 pages_inside(u32 region, u32 first, u32 end) {
    u32 const low = region * Config.region_pages, high = low + Config.region_pages;
    return (high < end ? high : end) - (low > first ? low : first);
  }

  table_type table_;
};

}  // namespace warpheap::inline WARPHEAP_BACKEND
