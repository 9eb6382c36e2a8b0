// Requests larger than a page: runs of consecutive free pages, greedily from the end of the heap, so that they meet the
// chunks at the front last. A run lies at the upper end of a free stretch, so requests of one length leave no gaps.
//
// One search at a time, under a mutex: two searches that each hold half of what the other needs would both fail. Lanes of a
// warp that ask for one length are served by one search. A search that found nothing speaks for all that waited while it
// began: its number tells.
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

  /// Runs in a row.
  struct run_row {
    u32 first = none;
    u32 runs = 0;
  };

  WARPHEAP_DEVICE explicit page_runs(table_type const& table) : table_{table} {}

  WARPHEAP_DEVICE void* create_together(u64 length, u64 alignment) const {
    if (length > table_.pages()) return fail();
    u32 const pages = static_cast<u32>(length);
    u64 const coarse = alignment <= layout::page_bytes ? 1 : alignment;
    lane_group const group = group_by(lanes_with_same(simt::active_mask(), table_), length << 6 | log2_floor(coarse));
    // What any of us knows to have been freed, all of us see.
    simt::sync_warp(group.mask);
    u32 served = 0, mine = none;
    WARPHEAP_NO_UNROLL
    while (served < group.size) {
      run_row const row = take(group, pages, coarse == 1 ? group.size - served : 1, coarse);
      if (row.runs == 0) break;
      if (group.rank >= served && group.rank < served + row.runs) mine = row.first + (group.rank - served) * pages;
      served += row.runs;
    }
    return mine == none ? fail() : table_.data(mine);
  }

  WARPHEAP_DEVICE void* fail() const {
    table_.add_count(table_type::count::failures, 1);
    return nullptr;
  }

  /// Up to `wanted` runs; none if at one instant of the call there was no place for one. All lanes of the group call together,
  /// as in all that takes a group, and hold the result.
  WARPHEAP_DEVICE run_row take(lane_group const& group, u32 length, u32 wanted, u64 alignment) const {
    u64 arrived = 0;
    if (group.leads) {
      // A read-modify-write, which reads the newest: a search with a larger number began after this. release: and it sees
      // what we know to have been freed; pairs with the acquire where it begins.
      arrived = table_.run_word(begun).fetch_add(0, order::release);
      lock();
    }
    run_row row;
    WARPHEAP_NO_UNROLL
    for (;;) {
      // The leader's acquire is everybody's.
      simt::sync_warp(group.mask);
      u64 const used = broadcast(group, group.leads ? table_.run_word(used_above).load(order::relaxed) : 0);
      row = find_below(group, used, length, wanted, alignment);
      if (row.runs == 0) {
        bool certain = false;
        if (group.leads) row = search(arrived, length, wanted, alignment, certain);
        row = {broadcast(group, row.first), broadcast(group, row.runs)};
        if (broadcast(group, static_cast<u32>(certain))) break;
      }
      if (row.runs != 0 && claim(group, row, length)) break;
      simt::pause(pause_nanoseconds);
    }
    // Everybody's claims come before the mutex is free; and all that was acquired is everybody's.
    simt::sync_warp(group.mask);
    if (!group.leads) return row;
    if (row.runs != 0) table_.run_word(used_above).store(table_.pages() - row.first, order::relaxed);
    unlock();
    return row;
  }
  static constexpr u32 pause_nanoseconds = 128;

  /// The highest runs of the heap, under the mutex. None if `certain` that there are none, or if somebody made room meanwhile.
  /// Any lane alone.
  WARPHEAP_DEVICE run_row search(u64 arrived, u32 length, u32 wanted, u64 alignment, bool& certain) const {
    certain = is_known_fruitless(arrived, length, alignment);
    if (certain) return {};
    // acquire: what all knew who came before.
    u64 const number = table_.run_word(begun).fetch_add(1, order::acquire) + 1;
    u64 first = 0, second = 0;
    run_row row;
    WARPHEAP_NO_UNROLL
    for (u32 look = 0; look < 2 && row.runs == 0; ++look) {
      first = second;
      second = 0;
      row = page_runs{table_.afresh()}.find(length, wanted, alignment, look == 1, second);
    }
    certain = row.runs == 0 && first == second;
    if (certain && alignment == 1) table_.run_word(fruitless).store(number << 32 | length, order::relaxed);
    return row;
  }

  WARPHEAP_DEVICE void lock() const {
    // acquire: pairs with the release in unlock().
    WARPHEAP_NO_UNROLL
    for (backoff wait; table_.run_word(mutex).exchange(1, order::acquire) != 0;) wait.pause();
  }
  WARPHEAP_DEVICE void unlock() const { table_.run_word(mutex).store(0, order::release); }

  /// Whether a search that began after search number `arrived` found no run of this length or a shorter one. Under the mutex.
  WARPHEAP_DEVICE bool is_known_fruitless(u64 arrived, u32 length, u64 alignment) const {
    u64 const seen = table_.run_word(fruitless).load(order::relaxed);
    return alignment == 1 && static_cast<i32>(static_cast<u32>(seen >> 32) - static_cast<u32>(arrived)) > 0 &&
           static_cast<u32>(seen) <= length;
  }

  WARPHEAP_DEVICE bool starts_aligned(u32 page, u64 alignment) const {
    return (reinterpret_cast<u64>(table_.data(page)) & (alignment - 1)) == 0;
  }

  /// Walks down over the pages until a free stretch holds what is wanted.
  struct stretch {
    u32 length, wanted;
    u64 alignment;
    u32 pages = 0;  ///< free pages, one after the other
    run_row found{};

    /// The next lower page is `page`; returns whether the search is over.
    WARPHEAP_DEVICE bool show(page_runs const& runs, u32 page, bool free) {
      pages = free ? pages + 1 : 0;
      if (!free) return found.runs != 0;
      if (pages < length || !runs.starts_aligned(page, alignment)) return false;
      // Aligned runs come singly. Others: the lower the page, the more runs lie between it and the stretch's end.
      if (alignment != 1) found = {page, 1};
      else if (pages % length == 0) found = {page, pages / length};
      return found.runs >= wanted;
    }
  };

  /// The highest runs below the last `used` pages, or in the free stretch that they begin in. Lanes side by side.
  WARPHEAP_DEVICE run_row find_below(lane_group const& group, u64 used, u32 length, u32 wanted, u64 alignment) const {
    u32 end = table_.pages() - static_cast<u32>(used);
    if (group.leads) {
      WARPHEAP_NO_UNROLL
      while (end < table_.pages() && table_.load(end).is_free()) ++end;
    }
    end = broadcast(group, end);
    stretch walk{length, wanted, alignment};
    WARPHEAP_NO_UNROLL
    for (u32 looked = 0; end != 0 && (looked < most_looks || walk.pages != 0); looked += group.size) {
      u32 const free = simt::ballot(group.mask, group.rank < end && table_.load(end - 1 - group.rank).is_free());
      WARPHEAP_NO_UNROLL
      for (u32 rest = group.mask; rest != 0 && end != 0; rest &= rest - 1)
        if (--end, walk.show(*this, end, (free >> lowest_bit(rest)) & 1)) return walk.found;
    }
    return walk.found;
  }
  static constexpr u32 most_looks = 256;  // pages in use below the hint, before regions are looked at

  /// The highest runs there are; `trace` is of what was seen (page_search.hpp, look()).
  WARPHEAP_DEVICE run_row find(u32 length, u32 wanted, u64 alignment, bool newest, u64& trace) const {
    stretch walk{length, wanted, alignment};
    u32 const access_block_regions = table_.access_block_regions();
    WARPHEAP_NO_UNROLL
    for (u32 region = table_.regions(); region-- != 0;) {
      u32 const access_block = region / access_block_regions;
      bool const enters = region + 1 == table_.regions() || (region + 1) % access_block_regions == 0;
      u64 const above = enters ? read(table_.access_block(access_block), newest) : 0;
      bool const all_full = enters && fill_count{above}.counts_all(table_.regions_of(access_block));
      u64 const count = all_full ? above : read(table_.region(region), newest);
      u32 const pages = table_.pages_of(region), first = region * Config.region_pages;
      if (all_full || fill_count{count}.counts_all(pages)) {
        trace += mix(count ^ mix(~u64{region}) ^ all_full);
        if (walk.show(*this, first, false)) return walk.found;
        if (all_full) region = access_block * access_block_regions;
        continue;
      }
      WARPHEAP_NO_UNROLL
      for (u32 i = pages; i-- != 0;) {
        page_word const seen{read(table_.page(first + i), newest)};
        trace += mix(u64{first + i} << 32 | seen.version());
        if (walk.show(*this, first + i, seen.is_free())) return walk.found;
      }
    }
    return walk.found;
  }

  // As in page_search.hpp.
  WARPHEAP_DEVICE static u64 read(atomic_ref<u64> word, bool newest) {
    return newest ? word.fetch_or(0, order::relaxed) : word.load(order::relaxed);
  }

  /// Makes the pages of a row ours; true if all were free, else those that we took are free again. Lanes side by side.
  WARPHEAP_DEVICE bool claim(lane_group const& group, run_row row, u32 length) const {
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
