// Requests larger than a page: runs of consecutive free pages, greedily from the end of the heap, so that they meet the
// chunks at the front last. A run lies at the upper end of a free stretch, so requests of one length leave no gaps.
//
// One search at a time, under a mutex: two searches that each hold half of what the other needs would both fail. The lanes of
// a warp search together, for one length after the other, and those that ask for one length are served by one search. A
// search that found nothing speaks for all that waited while it began: its number tells.
//
//   R1  the word of a run's first page says how many pages it has; who changes it to that of an inner page frees the run.
//   R2  the words of the others are those of inner pages from before the first is written until after it is changed.
#pragma once

#include "../../../platform/backoff.hpp"
#include "../../../sync/same_object.hpp"
#include "../../../sync/warp_aggregate.hpp"
#include "page_table.hpp"

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

 private:
  static constexpr u32 none = ~0u;
  // Words of control: the mutex; the number of the last search begun; number of the last fruitless one and its length; how
  // many pages at the end hold none that is free, a hint.
  static constexpr u32 mutex = 0, begun = 1, fruitless = 2, used_above = 3;

  /// What is asked for.
  struct run_request {
    u32 length;     ///< pages
    u64 alignment;  ///< of the first page, in bytes; 1: any page will do

    WARPHEAP_DEVICE bool operator==(run_request const& other) const {
      return length == other.length && alignment == other.alignment;
    }
  };

  /// Runs in a row.
  struct run_row {
    u32 first = none;
    u32 runs = 0;
  };

  WARPHEAP_DEVICE explicit page_runs(table_type const& table) : table_{table} {}

  WARPHEAP_DEVICE void* create_together(u64 length, u64 alignment) const {
    if (length > table_.pages()) return fail();
    u32 const company = lanes_with_same(simt::active_mask(), table_);
    run_request const mine{static_cast<u32>(length), alignment <= layout::page_bytes ? 1 : alignment};
    // What any of us knows to have been freed, all of us see.
    simt::sync_warp(company);
    u32 page = none;
    WARPHEAP_NO_UNROLL
    for (u32 rest = company; rest != 0;) {
      // One request at a time, for as many as make it; all lanes look for it.
      run_request const wish{simt::shuffle(company, mine.length, lowest_bit(rest)),
                             simt::shuffle(company, mine.alignment, lowest_bit(rest))};
      u32 const asking = simt::ballot(company, mine == wish) & rest;
      run_row const row = take(company, wish, wish.alignment == 1 ? popcount(asking) : 1);
      u32 const rank = popcount(asking & simt::lanes_below());
      bool const ours = (asking >> simt::lane_id()) & 1;
      if (ours && rank < row.runs) page = row.first + rank * wish.length;
      // Those who are served need no more, and if there was nothing all of them have their answer.
      rest &= ~(row.runs == 0 ? asking : simt::ballot(company, ours && rank < row.runs));
    }
    return page == none ? fail() : table_.data(page);
  }

  WARPHEAP_DEVICE void* fail() const {
    table_.add_count(table_type::count::failures, 1);
    return nullptr;
  }

  WARPHEAP_DEVICE static bool leads(u32 company) { return (company & simt::lanes_below()) == 0; }
  /// The value of the lowest lane of `company`.
  template <class T>
  WARPHEAP_DEVICE static T to_all(u32 company, T value) {
    return simt::shuffle(company, value, lowest_bit(company));
  }

  /// Up to `wanted` runs; none if at one instant of the call there was no place for one. All lanes of `company` call together,
  /// as in all that takes a group, and hold the result.
  WARPHEAP_DEVICE run_row take(u32 company, run_request const& wish, u32 wanted) const {
    bool locked = false;
    u64 arrived = 0;
    if (leads(company)) {
      // A read-modify-write, which reads the newest: a search with a larger number began after this. release: and it sees
      // what we know to have been freed; pairs with the acquire where it begins.
      arrived = table_.run_word(begun).fetch_add(0, order::release);
      locked = lock_unless_fruitless(arrived, wish);
    }
    if (simt::ballot(company, locked) == 0) return {};
    run_row row;
    WARPHEAP_NO_UNROLL
    for (;;) {
      // The leader's acquire is everybody's.
      simt::sync_warp(company);
      u64 const used = to_all(company, leads(company) ? table_.run_word(used_above).load(order::relaxed) : 0);
      row = find_below(company, used, wish, wanted);
      bool certain = false;
      if (row.runs == 0) row = search(company, arrived, wish, wanted, certain);
      if (certain || (row.runs != 0 && claim(company, row, wish.length))) break;
      simt::pause(pause_nanoseconds);
    }
    // Everybody's claims come before the mutex is free; and all that was acquired is everybody's.
    simt::sync_warp(company);
    if (!leads(company)) return row;
    if (row.runs != 0) table_.run_word(used_above).store(table_.pages() - row.first, order::relaxed);
    // release: pairs with the acquire of who locks it next.
    table_.run_word(mutex).store(0, order::release);
    return row;
  }
  static constexpr u32 pause_nanoseconds = 128;

  /// The highest runs of the heap, under the mutex. None if `certain` that there are none, or if somebody made room meanwhile.
  WARPHEAP_DEVICE run_row search(u32 company, u64 arrived, run_request const& wish, u32 wanted, bool& certain) const {
    certain = to_all(company, u32{leads(company) && is_known_fruitless(arrived, wish)});
    if (certain) return {};
    // acquire: what all knew who came before.
    u64 const number = leads(company) ? table_.run_word(begun).fetch_add(1, order::acquire) + 1 : 0;
    simt::sync_warp(company);
    u64 trace = 0;  // of the first look, less that of the second
    run_row row;
    WARPHEAP_NO_UNROLL
    for (u32 look = 0; look < 2 && row.runs == 0; ++look) {
      trace = 0 - trace;
      row = page_runs{table_.afresh()}.find(company, wish, wanted, look == 1, trace);
    }
    certain = row.runs == 0 && simt::ballot(company, trace != 0) == 0;
    if (certain && leads(company) && wish.alignment == 1)
      table_.run_word(fruitless).store(number << 32 | wish.length, order::relaxed);
    return row;
  }

  /// False, and no lock, if somebody else finds out meanwhile that there is nothing.
  WARPHEAP_DEVICE bool lock_unless_fruitless(u64 arrived, run_request const& wish) const {
    // acquire: pairs with the release in take().
    WARPHEAP_NO_UNROLL
    for (backoff wait; table_.run_word(mutex).exchange(1, order::acquire) != 0; wait.pause())
      if (is_known_fruitless(arrived, wish)) return false;
    return true;
  }

  /// Whether a search that began after search number `arrived` found no run of this length or a shorter one.
  WARPHEAP_DEVICE bool is_known_fruitless(u64 arrived, run_request const& wish) const {
    // relaxed: numbers alone; whoever believes one came before the search began.
    u64 const seen = table_.run_word(fruitless).load(order::relaxed);
    return wish.alignment == 1 && static_cast<i32>(static_cast<u32>(seen >> 32) - static_cast<u32>(arrived)) > 0 &&
           static_cast<u32>(seen) <= wish.length;
  }

  WARPHEAP_DEVICE bool starts_aligned(u32 page, u64 alignment) const {
    return (reinterpret_cast<u64>(table_.data(page)) & (alignment - 1)) == 0;
  }

  /// Walks down over the pages until a free stretch holds what is wanted.
  struct stretch {
    run_request wish;
    u32 wanted;
    u32 pages = 0;  ///< free pages, one after the other
    run_row found{};

    /// The next lower page is `page`; returns whether the search is over.
    WARPHEAP_DEVICE bool show(page_runs const& runs, u32 page, bool free) {
      if (!free) return interrupt();
      ++pages;
      if (pages < wish.length || !runs.starts_aligned(page, wish.alignment)) return false;
      // Aligned runs come singly. Others: the lower the page, the more runs lie between it and the stretch's end.
      if (wish.alignment != 1) found = {page, 1};
      else if (pages % wish.length == 0) found = {page, pages / wish.length};
      return found.runs >= wanted;
    }

    /// The next lower `count` pages are free; false if they may end a run, and are to be shown one by one.
    WARPHEAP_DEVICE bool pass(u32 count) {
      u32 const reached = alignment_free() ? pages % wish.length + count : pages + count;
      if (reached >= wish.length) return false;
      pages += count;
      return true;
    }
    WARPHEAP_DEVICE bool alignment_free() const { return wish.alignment == 1; }

    /// The next lower page is in use.
    WARPHEAP_DEVICE bool interrupt() {
      pages = 0;
      return found.runs != 0;
    }
  };

  /// The highest runs near the last `used` pages: below, or in the free stretch that they begin in. Lanes side by side, each
  /// at a page.
  WARPHEAP_DEVICE run_row find_below(u32 company, u64 used, run_request const& wish, u32 wanted) const {
    u32 end = table_.pages() - static_cast<u32>(used);
    if (leads(company)) {
      WARPHEAP_NO_UNROLL
      while (end < table_.pages() && table_.load(end).is_free()) ++end;
    }
    end = to_all(company, end);
    stretch walk{wish, wanted};
    WARPHEAP_NO_UNROLL
    for (u32 looked = 0; end != 0 && (looked < most_looks || walk.pages != 0); looked += popcount(company)) {
      u32 const free =
          simt::ballot(company, popcount(company & simt::lanes_below()) < end &&
                                    table_.load(end - 1 - popcount(company & simt::lanes_below())).is_free());
      WARPHEAP_NO_UNROLL
      for (u32 rest = company; rest != 0 && end != 0; rest &= rest - 1)
        if (--end, walk.show(*this, end, (free >> lowest_bit(rest)) & 1)) return walk.found;
    }
    return walk.found;
  }
  static constexpr u32 most_looks = 256;  // pages near the hint, before regions are looked at

  /// The highest runs there are; `trace` is of what was seen (page_search.hpp, look()). Lanes side by side, each at a region.
  WARPHEAP_DEVICE run_row find(u32 company, run_request const& wish, u32 wanted, bool newest, u64& trace) const {
    stretch walk{wish, wanted};
    u32 const access_block_regions = table_.access_block_regions();
    WARPHEAP_NO_UNROLL
    for (u32 regions = table_.regions(); regions != 0;) {
      u32 const access_block = (regions - 1) / access_block_regions, first = access_block * access_block_regions;
      u64 const count = to_all(company, leads(company) ? read(table_.access_block(access_block), newest) : 0);
      if (fill_count{count}.counts_all(table_.regions_of(access_block))) {
        if (leads(company)) trace += mix(count ^ mix(~u64{access_block}) ^ 1);
        if (walk.interrupt()) return walk.found;
        regions = first;
        continue;
      }
      WARPHEAP_NO_UNROLL
      for (; regions > first; regions = regions - first > popcount(company) ? regions - popcount(company) : first) {
        u32 const region = regions - 1 - popcount(company & simt::lanes_below());
        u64 const free =
            popcount(company & simt::lanes_below()) < regions - first ? free_pages(region, newest, trace) : 0;
        if (show_regions(company, regions, regions - first, free, walk)) return walk.found;
      }
    }
    return walk.found;
  }

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
  static constexpr u32 side_by_side = 1;  // loads in flight at a time

  /// Shows the walk the regions below `end`, at most `count`: each lane has the free pages of one. Returns whether it is over.
  WARPHEAP_DEVICE bool show_regions(u32 company, u32 end, u32 count, u64 free, stretch& walk) const {
    u32 const with_free = simt::ballot(company, free != 0);
    if (with_free == 0) return walk.interrupt();
    WARPHEAP_NO_UNROLL
    for (u32 rest = company; rest != 0 && count != 0; rest &= rest - 1, --count) {
      --end;
      if (!((with_free >> lowest_bit(rest)) & 1)) {
        if (walk.interrupt()) return true;
        continue;
      }
      u64 const pages = simt::shuffle(company, free, lowest_bit(rest));
      u32 const count_here = table_.pages_of(end);
      if (popcount(pages) == count_here && walk.pass(count_here)) continue;
      WARPHEAP_NO_UNROLL
      for (u32 i = count_here; i-- != 0;)
        if (walk.show(*this, end * Config.region_pages + i, (pages >> i) & 1)) return true;
    }
    return false;
  }

  // As in page_search.hpp.
  WARPHEAP_DEVICE static u64 read(atomic_ref<u64> word, bool newest) {
    return newest ? word.fetch_or(0, order::relaxed) : word.load(order::relaxed);
  }

  /// Makes the pages of a row ours; true if all were free, else those that we took are free again. Lanes side by side.
  WARPHEAP_DEVICE bool claim(u32 company, run_row row, u32 length) const {
    lane_group const group = group_of(company);
    u32 const end = row.first + row.runs * length;
    u32 page = row.first + group.rank;
    bool good = true;
    WARPHEAP_NO_UNROLL
    for (; good && page < end; page += group.size) {
      page_word const seen = table_.load(page);
      u64 expected = seen.word;
      // acquire: the last owners' writes happen before ours; pairs with the releases of those who freed the page.
      good = seen.is_free() &&
             table_.page(page).compare_exchange(expected, inner(seen).word, order::acquire, order::relaxed);
    }
    if (simt::ballot(group.mask, !good) != 0) {
      u32 const mine = good ? page : page - group.size;  // the first that is not ours
      WARPHEAP_NO_UNROLL
      for (page = row.first + group.rank; page < mine; page += group.size) free_page(page);
      return false;
    }
    u32 const first_region = row.first / Config.region_pages, last_region = (end - 1) / Config.region_pages;
    WARPHEAP_NO_UNROLL
    for (u32 region = first_region + group.rank; region <= last_region; region += group.size)
      table_.count_full(region, pages_inside(region, row.first, end));
    // R2, F1: the runs can be freed from here on. What others of us did comes before.
    simt::sync_warp(group.mask);
    WARPHEAP_NO_UNROLL
    for (u32 i = group.rank; i < row.runs; i += group.size) {
      // relaxed: the caller hands the address on as it hands on the contents (R1).
      table_.page(row.first + i * length).fetch_add(head(length) - inner({}).word, order::relaxed);
    }
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
    // relaxed: a hint.
    u64 const above = table_.pages() - first - length;
    u64 used = table_.run_word(used_above).load(order::relaxed);
    while (used > above && !table_.run_word(used_above).compare_exchange(used, above, order::relaxed, order::relaxed)) {
    }
    return true;
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
