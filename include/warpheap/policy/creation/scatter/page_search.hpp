// Which page serves a request: the one that the scattering hash names, others of its region, regions of the access block in
// use; and the certain answer when there is none.
//
// The hash spreads (size, multiprocessor, warp) over the open access blocks, so that threads seldom meet, while one warp
// that asks for one size comes back to its own page. When attempts fail, the access block after the last is the one in use.
#pragma once

#include "../../../sync/warp_aggregate.hpp"
#include "page_table.hpp"

namespace warpheap::inline WARPHEAP_BACKEND {

/// Finds room for chunks. Stateless; `table` is the heap.
template <creation::scatter_config Config>
class page_search {
 public:
  using table_type = page_table<Config>;
  using layout = typename table_type::layout;
  static constexpr u32 none = ~0u;

  WARPHEAP_DEVICE explicit page_search(table_type const& table) : table_{table} {}

  /// The page where this warp's requests for `units` go; `part` tells apart those of one warp that need several.
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
    return page < range ? page : part < range ? page - range : 0;
  }

  /// Chunks from page `named`, or if that is `none` from some page where a look showed room; none if a few looks showed none,
  /// or if others were faster, which is no certain answer. Any lane alone.
  ///
  /// start   page whose region is looked at first
  WARPHEAP_DEVICE chunk_set probe(chunk_request const& request, u32 wanted, u32 named, u32 start) const {
    chunk_set got{};
    u32 region = start / Config.region_pages, from = start % Config.region_pages;
    WARPHEAP_NO_UNROLL
    for (u32 attempt = 0; got.bits == 0 && attempt < (named == none ? 1 + 2 * attempts : 1); ++attempt) {
      if (attempt != 0) {
        if (attempt == 1 + attempts) move_on();
        u32 const random = random_bits(), active = active_access_block();
        region = active * table_.access_block_regions() + scale_below(random, table_.regions_of(active));
        from = random % Config.region_pages;
      }
      u32 const page = named == none ? find_in_region(region, from, request) : named;
      if (page != none) got = table_.template take<path::called>(page, table_.load(page), request, wanted);
    }
    return got;
  }

  /// The certain answer: a page with room for the request, or `none`, and then at one instant of the call every chunk of a
  /// suitable page was owned or promised to a call in progress, and no page was free. All lanes of the group call together
  /// and hold the result.
  ///
  /// Looks twice at every page, or region, or access block that is full. If nothing had room in both looks and no version
  /// changed in between, then nothing had room at the instant between the looks (S4, F2).
  WARPHEAP_DEVICE u32 sweep(lane_group const& group, chunk_request const& request, u32 named) const {
    // From a region of our own: searchers that start together would all come to the same page.
    u32 const start =
        named != none ? named / Config.region_pages : broadcast(group, scale_below(random_bits(), table_.regions()));
    WARPHEAP_NO_UNROLL
    for (;;) {
      // What any of us knows to have been freed, all of us see.
      simt::sync_warp(group.mask);
      u64 first = 0, second = 0;
      u32 seen = none;
      WARPHEAP_NO_UNROLL
      for (u32 turn = 0; turn < 2 && seen == none; ++turn) {
        first = second;
        second = 0;
        seen = page_search{table_.afresh()}.look(group, request, start, turn == 1, second);
      }
      if (seen != none) return seen;
      if (simt::ballot(group.mask, first != second) == 0) return none;
      simt::pause(pause_nanoseconds);
    }
  }

 private:
  static constexpr u32 attempts = 4;  // regions of an access block before the next one is in use
  static constexpr u32 pause_nanoseconds = 128;

  WARPHEAP_DEVICE static u32 random_bits() {
    return mix32(static_cast<u32>(simt::clock()) + 0x9e37'79b9u * (32 * simt::sm_id() + simt::lane_id()));
  }

  WARPHEAP_DEVICE u32 active_access_block() const {
    // relaxed: a hint.
    return static_cast<u32>(table_.active_access_block().load(order::relaxed));
  }
  /// The access block after this one is the one in use; one of those who found nothing sees to it.
  WARPHEAP_DEVICE void move_on() const {
    u64 active = active_access_block();
    u64 const next = active + 1 < table_.access_blocks() ? active + 1 : 0;
    table_.active_access_block().compare_exchange(active, next, order::relaxed, order::relaxed);
  }

  static constexpr u32 side_by_side = 4;  // loads in flight at a time

  /// The first page of a region with room, from its page `start` on and around; `none` if none was seen.
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

  // relaxed loads first: an old value whose version is still the newest at the second look was true in between. The second
  // look is by read-modify-writes, which read the newest.
  WARPHEAP_DEVICE static u64 read(atomic_ref<u64> word, bool newest) {
    return newest ? word.fetch_or(0, order::relaxed) : word.load(order::relaxed);
  }

  /// A page with room, or `none`, and then `trace` is of what was seen: it changes with every version. From region `start`
  /// on and around; lanes of the group side by side, each at a region.
  WARPHEAP_DEVICE u32 look(lane_group const& group, chunk_request const& request, u32 start, bool newest,
                           u64& trace) const {
    u32 const access_blocks = table_.access_blocks(), start_access_block = start / table_.access_block_regions();
    WARPHEAP_NO_UNROLL
    for (u32 i = 0; i < access_blocks; ++i) {
      u32 const access_block =
          start_access_block + i < access_blocks ? start_access_block + i : start_access_block + i - access_blocks;
      u32 const regions = table_.regions_of(access_block);
      u64 const seen = broadcast(group, group.leads ? read(table_.access_block(access_block), newest) : 0);
      if (fill_count{seen}.counts_all(regions)) {
        if (group.leads) trace += mix(seen ^ (u64{access_block} << 48 | u64{1} << 47));
        continue;
      }
      u32 const first = access_block * table_.access_block_regions(),
                offset = start % table_.access_block_regions() % regions;
      WARPHEAP_NO_UNROLL
      for (u32 done = 0; done < regions; done += group.size) {
        u32 const ahead = offset + done + group.rank;
        u32 const region = first + (ahead < regions ? ahead : ahead - regions);
        u32 const found = done + group.rank < regions ? look_at_region(region, request, newest, trace) : none;
        u32 const found_by = simt::ballot(group.mask, found != none);
        if (found_by) return simt::shuffle(group.mask, found, lowest_bit(found_by));
      }
    }
    return none;
  }

  WARPHEAP_DEVICE u32 look_at_region(u32 region, chunk_request const& request, bool newest, u64& trace) const {
    u32 const pages = table_.pages_of(region);
    u64 const count = read(table_.region(region), newest);
    if (fill_count{count}.counts_all(pages)) {
      trace += mix(count ^ mix(~u64{region}));
      return none;
    }
    u32 const first = region * Config.region_pages;
    u32 found = none;
    WARPHEAP_NO_UNROLL
    for (u32 done = 0; done < pages; done += side_by_side) {
      page_word seen[side_by_side];
      for (u32 k = 0; k < side_by_side; ++k) {
        u32 const page = first + (done + k < pages ? done + k : pages - 1);
        seen[k] = {read(table_.page(page), newest)};
      }
      for (u32 k = 0; k < side_by_side; ++k) {
        u32 const page = first + (done + k < pages ? done + k : pages - 1);
        if (table_type::has_room(seen[k], request)) found = page;
        trace += mix(u64{page} << 32 | seen[k].version());
      }
    }
    return found;
  }

  table_type table_;
};

}  // namespace warpheap::inline WARPHEAP_BACKEND
