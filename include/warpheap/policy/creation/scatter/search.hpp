// SPDX-License-Identifier: Apache-2.0
// Which page serves a request: the one that the scattering hash names, others of its region,
// regions of the access block in use; and the certain answer when there is none.
//
// The hash spreads (size, multiprocessor, warp) over the open access blocks, so that threads seldom
// meet, while one warp that asks for one size comes back to its own page. When attempts fail,
// requests turn to the next access block.
#pragma once

#include "../../../sync/lane_random.hpp"
#include "../../../sync/shared_pass.hpp"
#include "table.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace scatter_parts {

/// Finds room for chunks. Stateless; `table` is the heap.
template <creation::scatter_config Config>
class search {
 public:
  using table_type = table<Config>;
  using layout = typename table_type::layout;
  static constexpr u32 none = ~0u;

  WARPHEAP_DEVICE explicit search(table_type const& table) : table_{table} {}

  /// The page where this warp's requests for `units` go; `part` tells apart the requests of one
  /// warp that need several pages.
  WARPHEAP_DEVICE u32 home(u32 units, u32 part) const {
    u32 const warps = (simt::block_dim() + warp_lanes - 1) / warp_lanes;
    return page_at(place_of(units, simt::sm_id(), simt::block_index() * warps + simt::warp_id()), part, table_.pages(),
                   table_.access_block_pages());
  }

  /// The scattering hash: a point of the range [0, 2^32).
  WARPHEAP_HOST_DEVICE static constexpr u32 place_of(u32 units, u32 multiprocessor, u32 warp) {
    return units * Config.hash_size + multiprocessor * Config.hash_multiprocessor + warp * Config.hash_warp;
  }
  /// The page `part` pages after `place` among those of the open access blocks.
  WARPHEAP_HOST_DEVICE static constexpr u32 page_at(u32 place, u32 part, u32 pages, u32 access_block_pages) {
    u32 const range = Config.open_blocks * access_block_pages < pages ? Config.open_blocks * access_block_pages : pages;
    u32 const page = scale_below(place, range) + part;
    if (page < range) return page;
    return part < range ? page - range : 0;
  }

  /// Takes chunks from page `named` or, if that is `none`, from a page where a look showed room. It
  /// gets none if a few looks showed no room, or if others were faster, which is no certain answer.
  /// Any lane alone.
  ///
  /// start   page whose region is looked at first
  WARPHEAP_DEVICE chunk_set probe(chunk_request const& request, u32 wanted, u32 named, u32 start) const {
    chunk_set got{};
    u32 region = start / Config.region_pages, from = start % Config.region_pages;
    WARPHEAP_NO_UNROLL
    for (u32 attempt = 0; got.bits == 0 && attempt < (named == none ? 1 + 2 * attempts : 1); ++attempt) {
      if (attempt != 0) {
        if (attempt == 1 + attempts) move_on();
        u32 const random = lane_random_bits(), active = active_access_block();
        region = active * table_.access_block_regions() + scale_below(random, table_.regions_of(active));
        from = random % Config.region_pages;
      }
      u32 const page = named == none ? find_in_region(region, from, request) : named;
      if (page != none) got = table_.template take<path::called>(page, table_.load(page), request, wanted);
    }
    return got;
  }

  /// The certain answer: a page with room for the lane's request, or `none`. `none` means that at
  /// one instant of the call every chunk of a suitable page was owned or promised to a call in
  /// progress, and no page was free. All lanes of `active` call together, with the same heap. The
  /// search may end for all of them when the request of one lane has a page.
  ///
  /// Looks twice at every page, or region, or access block that is full. If neither look saw room
  /// and no version changed in between, then nothing had room at the instant between the looks
  /// (scatter.S4, scatter.F2). One search answers every call that came before it began.
  ///
  /// leader   of the lane's group: lanes of `active` with one request, which get one answer
  /// named    page that was found lately, or `none`
  /// certain  set where `none` is the answer; else the lane calls again
  WARPHEAP_DEVICE u32 sweep(lane_mask active, u32 leader, chunk_request const& request, u32 named,
                            bool& certain) const {
    u64 const number = begin_pass(table_.searches_begun(), active);
    // From a region of our own: searchers that start together would all come to the same page.
    u32 start = named != none ? named / Config.region_pages : scale_below(lane_random_bits(), table_.regions());
    start = simt::shuffle(active, start, lowest_bit(active));
    WARPHEAP_NO_UNROLL
    for (u32 nap = 32;; nap = nap < 1024 ? 2 * nap : nap) {
      u64 trace = 0;  // of the first look, less that of the second
      sighting seen;
      WARPHEAP_NO_UNROLL
      for (u32 turn = 0; turn < 2; ++turn) {
        trace = 0 - trace;
        search{table_.opaque()}.look(active, request, start, reading{turn == 1}, trace, seen);
        bool const known = simt::shuffle(active, u32{is_known_to_fail(number, request)}, leader);
        certain = seen.page == none && known;
        if (simt::ballot(active, seen.page != none || certain) != 0) return seen.page;
      }
      if (simt::ballot(active, trace != 0) == 0) {
        certain = true;
        note_failed_search(number, request, seen.saw_order);
        return none;
      }
      // Growing: a searcher in step with threads that move what it looks for would miss it for
      // ever.
      simt::pause(nap);
    }
  }

 private:
  WARPHEAP_DEVICE static bool leads(lane_mask active) { return (active & simt::lanes_below()) == 0; }

  static constexpr u32 attempts = 4;  // regions of an access block before the next one is in use
  static constexpr u32 units_bits = page_word::units_bits;

  /// What a lane was shown.
  struct sighting {
    u32 page = none;         ///< with room for the lane's request
    bool saw_order = false;  ///< some page had room for chunks of the request's orders
  };

  /// Sizes by their logarithm. A request of order k is served by chunks of the orders in span(k).
  WARPHEAP_HOST_DEVICE static constexpr u32 order_of(u32 units) { return log2_floor(units); }
  WARPHEAP_HOST_DEVICE static constexpr u32 span(u32 order) {
    u32 const largest = Config.waste_factor * ((2u << order) - 1);
    return low_mask32(order_of(largest < layout::page_units ? largest : layout::page_units) + 1) & ~low_mask32(order);
  }

  /// The last search that found nothing for requests of this size, or of a size that shares the
  /// word: number, units.
  WARPHEAP_DEVICE atomic_ref<u64> last_failed_search(chunk_request const& request) const {
    return table_.failed_search(table_type::orders + request.units % table_type::sizes_of_failed_searches);
  }
  /// The last one that found nothing for any request of this order.
  WARPHEAP_DEVICE atomic_ref<u64> last_failed_search_of_order(u32 order) const { return table_.failed_search(order); }

  /// Notes that search `number` found nothing for the request and, if it saw no chunk of its order,
  /// nothing for any request of its order.
  WARPHEAP_DEVICE void note_failed_search(u64 number, chunk_request const& request, bool saw_order) const {
    if (request.alignment != 1) return;
    // relaxed: numbers alone; a caller that believes one came before that search began.
    last_failed_search(request).store(number << units_bits | request.units, order::relaxed);
    if (!saw_order) last_failed_search_of_order(order_of(request.units)).store(number, order::relaxed);
  }

  /// Whether a search that began after search `number` found nothing for the request.
  WARPHEAP_DEVICE bool is_known_to_fail(u64 number, chunk_request const& request) const {
    // Where no chunk at all was found, there was none at a multiple of the alignment either.
    if (last_failed_search_of_order(order_of(request.units)).load(order::relaxed) > number) return true;
    u64 const seen = last_failed_search(request).load(order::relaxed);
    return (seen & low_mask32(units_bits)) == request.units && seen >> units_bits > number;
  }

  WARPHEAP_DEVICE u32 active_access_block() const {
    // relaxed: a hint.
    return static_cast<u32>(table_.active_access_block().load(order::relaxed));
  }
  /// Turns requests to the next access block. Of the threads that found nothing, one does it.
  WARPHEAP_DEVICE void move_on() const {
    u64 active = active_access_block();
    u64 const next = active + 1 < table_.access_blocks() ? active + 1 : 0;
    table_.active_access_block().compare_exchange(active, next, order::relaxed, order::relaxed);
  }

  static constexpr u32 side_by_side = 4;  // loads in flight at a time

  /// The first page of a region with room, from its page `start` on and around; `none` if none was
  /// seen.
  WARPHEAP_DEVICE u32 find_in_region(u32 region, u32 start, chunk_request const& request) const {
    u32 const first = region * Config.region_pages, pages = table_.pages_of(region);
    // relaxed: a hint; full regions are skipped.
    if (fill_count{table_.region(region).load(order::relaxed)}.counts_all(pages)) return none;
    u32 found = none, ahead = start < pages ? start : 0;
    WARPHEAP_NO_UNROLL
    for (u32 done = 0; done < pages && found == none; done += side_by_side) {
      u32 page[side_by_side];
      page_word seen[side_by_side];
      for (u32 k = 0; k < side_by_side; ++k) {
        page[k] = first + ahead;
        seen[k] = table_.load(page[k]);
        ahead = ahead + 1 < pages ? ahead + 1 : 0;
      }
      for (u32 k = side_by_side; k-- != 0;) found = table_type::has_room(seen[k], request) ? page[k] : found;
    }
    return found;
  }

  /// Finds a page with room for each lane's request. If there is none, `trace` sums up what the
  /// lane saw, and changes with every version. From region `start` on and around; the lanes of
  /// `active` side by side, each at a region. Ends early when every lane has a page.
  ///
  /// how     lately at the first look: a stale value whose version is still the newest at the
  ///         second look was true in between. newest at the second
  // NOLINTNEXTLINE(readability-function-cognitive-complexity): apart, mixed sizes took 5% longer
  WARPHEAP_DEVICE void look(lane_mask active, chunk_request const& request, u32 start, reading how, u64& trace,
                            sighting& seen_pages) const {
    u32 const access_blocks = table_.access_blocks();
    u32 const orders = simt::reduce_or(active, span(order_of(request.units)));
    u32 access_block = start / table_.access_block_regions();
    WARPHEAP_NO_UNROLL
    for (u32 left = access_blocks; left != 0; --left) {
      u32 const regions = table_.regions_of(access_block);
      u64 seen = leads(active) ? table_type::read(table_.access_block(access_block), how) : 0;
      seen = simt::shuffle(active, seen, lowest_bit(active));
      if (fill_count{seen}.counts_all(regions)) {
        if (leads(active)) trace += mix(seen ^ (u64{access_block} << 48 | u64{1} << 47));
      } else {
        WARPHEAP_NO_UNROLL
        for (u32 done = popcount(active & simt::lanes_below()); simt::ballot(active, done < regions) != 0;
             done += popcount(active)) {
          u32 const ahead = start % table_.access_block_regions() % regions + done;
          u32 const region = access_block * table_.access_block_regions() + (ahead < regions ? ahead : ahead - regions);
          look_at_region(active, done < regions ? region : none, orders, request, how, trace, seen_pages);
          if (simt::ballot(active, seen_pages.page == none) == 0) return;
        }
      }
      access_block = access_block + 1 < access_blocks ? access_block + 1 : 0;
    }
  }

  /// Looks at the pages of a region for all lanes of `active`, each of which has a region or
  /// `none`. A page in use matters to some of the lanes if its chunks are of one of `orders`.
  WARPHEAP_DEVICE void look_at_region(lane_mask active, u32 region, u32 orders, chunk_request const& request,
                                      reading how, u64& trace, sighting& seen_pages) const {
    u32 pages = 0;
    if (region != none) {
      pages = table_.pages_of(region);
      u64 const count = table_type::read(table_.region(region), how);
      if (fill_count{count}.counts_all(pages)) {
        trace += mix(count ^ mix(~u64{region}));
        pages = 0;
      }
    }
    u32 const first = region * Config.region_pages;
    // One page of each lane at a time: more of them in flight would cost the whole kernel
    // registers.
    WARPHEAP_NO_UNROLL
    for (u32 done = 0; simt::ballot(active, done < pages) != 0; ++done) {
      page_word seen{page_word::full_bit};
      if (done < pages) {
        seen.word = table_type::read(table_.page(first + done), how);
        trace += mix(u64{first + done} << 32 | seen.version());
      }
      bool const serves = !seen.is_full() && (seen.is_free() || ((orders >> order_of(seen.units())) & 1));
      show(active, serves, first + done, seen.units(), request, seen_pages);
      if (simt::ballot(active, seen_pages.page == none) == 0) return;
    }
  }

  /// Shows each page that a lane saw with room to all lanes, until all have one.
  WARPHEAP_DEVICE static void show(lane_mask active, bool serves, u32 page, u32 units, chunk_request const& request,
                                   sighting& seen_pages) {
    WARPHEAP_NO_UNROLL
    for (lane_mask rest = simt::ballot(active, serves); rest != 0 && simt::ballot(active, seen_pages.page == none) != 0;
         rest &= rest - 1) {
      u32 const shown = simt::shuffle(active, page, lowest_bit(rest));
      u32 const its_units = simt::shuffle(active, units, lowest_bit(rest));
      if (its_units == 0 || request.suits(its_units)) seen_pages.page = shown;
      else if ((span(order_of(request.units)) >> order_of(its_units)) & 1) seen_pages.saw_order = true;
    }
  }

  table_type table_;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::scatter_parts
