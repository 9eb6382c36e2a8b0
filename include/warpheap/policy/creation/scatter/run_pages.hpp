// SPDX-License-Identifier: Apache-2.0
// The pages of a run: how a run that a search listed is claimed, and how it is freed.
//
//   scatter.R1  the word of a run's first page says how many pages it has; the thread that changes
//       it to that of an inner page frees the run.
//   scatter.R2  the run's other pages have the words of inner pages from before the first page's
//       word is written until after it is changed.
#pragma once

#include "../../../sync/warp_aggregate.hpp"
#include "table.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace scatter_parts {

/// Claims and frees the pages of runs. Stateless; `table` is the heap.
template <creation::scatter_config Config>
class run_pages {
 public:
  using table_type = table<Config>;
  static constexpr u32 none = ~0u;

  WARPHEAP_DEVICE explicit run_pages(table_type const& table) : table_{table} {}

  /// Claims the runs that were listed for lanes of `active`: short ones each lane its own, long
  /// ones all lanes together, one after the other. `listed` is the first page of the lane's run, or
  /// `none`. Returns `listed`, or `none` where a request for chunks was faster.
  WARPHEAP_DEVICE u32 claim_listed(lane_mask active, u32 listed, u32 length) const {
    bool const alone = length <= most_alone;
    lane_group const group = alone ? group_of(lane_bit(simt::lane_id())) : group_of(active);
    u32 mine = none;
    WARPHEAP_NO_UNROLL
    for (lane_mask rest = alone ? lane_mask{listed != none} : simt::ballot(active, listed != none); rest != 0;
         rest &= rest - 1) {
      u32 const first = alone ? listed : simt::shuffle(active, listed, lowest_bit(rest));
      bool const good = claim(group, first, length);
      if (good && first == listed) mine = listed;
    }
    return mine;
  }

  /// Frees the run that starts at `first`, whose word was read as `seen`. False if another thread
  /// did (scatter.R1). Any lane alone.
  WARPHEAP_DEVICE bool free(u32 first, page_word seen) const {
    u32 const length = seen.low();
    u64 expected = seen.word;
    // acq_rel: one thread wins; the owner's writes are released by the fence below.
    if (!table_.page(first).compare_exchange(expected, inner(seen).word, order::acq_rel, order::relaxed)) return false;
    WARPHEAP_NO_UNROLL
    for (u32 region = first / Config.region_pages; region <= (first + length - 1) / Config.region_pages; ++region)
      table_.withdraw_full(region, pages_inside(region, first, first + length));
    release_fence();  // once for all pages, in place of a release of each
    WARPHEAP_NO_UNROLL
    for (u32 page = first; page != first + length; ++page) free_page(page);
    lower_used(table_.pages() - first - length);
    return true;
  }

  /// Makes one attempt to say that there are free pages below the last `above`. Threads that
  /// free upwards would retry for as long as they free. If the hint starts a search too low, the
  /// search goes on from the heap's end.
  WARPHEAP_DEVICE void lower_used(u64 above) const {
    // relaxed: a hint.
    u64 used = table_.run_word(control::used_above).load(order::relaxed);
    if (used > above)
      table_.run_word(control::used_above).compare_exchange(used, above, order::relaxed, order::relaxed);
  }

 private:
  using control = typename table_type::run_control;
  static constexpr u32 most_alone = 32;  // pages

  /// Makes the pages of a run ours. If not all were free, frees those that we took, and returns
  /// false. Lanes side by side.
  WARPHEAP_DEVICE bool claim(lane_group const& group, u32 first, u32 length) const {
    bool const alone = group.size == 1;
    u32 const end = first + length;
    u32 page = first + group.rank;
    bool good = true;
    WARPHEAP_NO_UNROLL
    for (; good && page < end; page += group.size) {
      page_word const seen = table_.load(page);
      u64 expected = seen.word;
      // acquire: the last owners' writes happen before ours; pairs with the releases of the threads
      // that freed the page.
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
    // scatter.R2, scatter.F1: the run can be freed from here on. What our other lanes did comes
    // before.
    if (!alone) simt::sync_warp(group.mask);
    // relaxed: the caller hands the address on by the same order as the contents (scatter.R1).
    if (group.leads) table_.page(first).fetch_add(head(length) - inner({}).word, order::relaxed);
    return true;
  }

  /// Frees an inner page of ours (scatter.S4).
  WARPHEAP_DEVICE void free_page(u32 page) const {
    // fenced: after release_fence(), or nothing was written to it.
    table_.page(page).fetch_add(page_word::version_unit - inner({}).word, order::fenced);
  }

  WARPHEAP_HOST_DEVICE static page_word inner(page_word seen) {
    return seen.with(page_word::inner_units, 0, page_fill::full);
  }
  WARPHEAP_HOST_DEVICE static u64 head(u32 length) {
    return page_word{}.with(page_word::run_units, length, page_fill::full).word;
  }

  /// Pages of a region that lie in [first, end).
  WARPHEAP_HOST_DEVICE static u32 pages_inside(u32 region, u32 first, u32 end) {
    u32 const low = region * Config.region_pages, high = low + Config.region_pages;
    return (high < end ? high : end) - (low > first ? low : first);
  }

  table_type table_;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::scatter_parts
