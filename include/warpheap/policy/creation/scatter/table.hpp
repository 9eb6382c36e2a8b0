// SPDX-License-Identifier: Apache-2.0
// The pages of one heap: where their words lie, and every change of a page, its region and its
// access block.
//
//   pool       page 0 | page 1 | ...    starts at a multiple of a page and of 4 KiB (unit_pool.hpp)
//   metadata   page words               words.hpp
//              fields                   of hierarchical pages: a bit a chunk, 32 bits a segment
//              regions, access blocks   words.hpp
//              control                  hints, the run mutex, counts
//              rounds, run list         words.hpp
//
//   transition             by                operation
//   take chunks of a       any thread        compare-exchange: bits set, units if it was free
//   flat page
//   take chunks of a       any thread        compare-exchange: count raised, units if it was free;
//   hierarchical page                        then fetch_or in the fields, which must succeed
//                                            (scatter.S2)
//   count a full page      the thread that   fetch_add to its region; to its access block if the
//                          filled it         region is full now
//   give chunks back       their owners'     clear in the field (hierarchical); if the page is
//                          leader            full, withdraw it; then compare-exchange
//   withdraw a page from   a thread about    if the region is full, withdraw it from its access
//   its region             to free           block first; then compare-exchange
#pragma once

#include "../../../util/random.hpp"
#include "../shared/unit_pool.hpp"
#include "page_layout.hpp"
#include "words.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace scatter_parts {

/// How code is compiled into its caller.
enum class path { inlined, called };

/// How a word is read: by a load, which may be stale, or by a read-modify-write, which reads the
/// newest value.
enum class reading : bool { lately, newest };

template <creation::scatter_config Config>
using page_pool = creation::unit_pool<Config.page_bytes, (Config.page_bytes > 4096 ? Config.page_bytes : 4096), u32, 1>;

/// View of a heap's pages; 16 bytes, trivially copyable, owns nothing.
template <creation::scatter_config Config>
class table : public page_pool<Config> {
  using base_type = page_pool<Config>;
  using base_type::base_, base_type::units_;

 public:
  using layout = page_layout<Config>;
  using count = creation::count;
  using base_type::pool;
  static constexpr u32 region_pages = Config.region_pages;

  /// Counts are spread over the multiprocessors: one address takes 1.29 billion additions a second.
  static constexpr u32 count_rows = 32;

  table() = default;
  WARPHEAP_HOST_DEVICE table(u8* metadata, u32 pages) : base_type{metadata, pages} {
    access_block_regions_ = (regions() + Config.access_blocks - 1) / Config.access_blocks;
  }

  /// A copy of this table whose sizes are opaque to the compiler.
  WARPHEAP_DEVICE table opaque() const {
    table same = *this;
    same.units_ = warpheap::opaque(units_);
    same.access_block_regions_ = warpheap::opaque(access_block_regions_);
    return same;
  }

  WARPHEAP_HOST_DEVICE u32 pages() const { return units_; }
  WARPHEAP_HOST_DEVICE u32 regions() const { return (units_ - 1) / region_pages + 1; }
  /// Regions of an access block; the last block may have fewer.
  WARPHEAP_HOST_DEVICE u32 access_block_regions() const { return access_block_regions_; }
  WARPHEAP_HOST_DEVICE u32 access_blocks() const { return (regions() - 1) / access_block_regions_ + 1; }
  WARPHEAP_HOST_DEVICE u32 access_block_pages() const { return access_block_regions_ * region_pages; }

  /// How many parts there are: the last region and the last access block may have fewer than the
  /// others.
  WARPHEAP_HOST_DEVICE u32 pages_of(u32 region) const {
    u32 const left = units_ - region * region_pages;
    return left < region_pages ? left : region_pages;
  }
  WARPHEAP_HOST_DEVICE u32 regions_of(u32 access_block) const {
    u32 const left = regions() - access_block * access_block_regions_;
    return left < access_block_regions_ ? left : access_block_regions_;
  }

  // Where things lie.
  WARPHEAP_HOST_DEVICE u8* data(u32 page) const { return pool() + (u64{page} << layout::page_log2); }
  WARPHEAP_HOST_DEVICE u64* words() const { return reinterpret_cast<u64*>(base_); }
  WARPHEAP_HOST_DEVICE u32* fields() const { return reinterpret_cast<u32*>(base_ + u64{units_} * 8); }
  /// sizes of chunks, by their logarithm
  static constexpr u32 orders = log2_floor(layout::page_units) + 1;
  static constexpr u32 sizes_of_failed_searches = 64;
  static constexpr u32 most_list_entries = 16384;
  /// words from one counter that many threads change to the next one
  static constexpr u32 spread = 16;
  WARPHEAP_HOST_DEVICE u64 regions_offset() const { return align_up(u64{units_} * (8 + 4 * layout::fields), 128); }
  WARPHEAP_HOST_DEVICE u64 access_blocks_offset() const { return regions_offset() + align_up(u64{regions()} * 8, 128); }
  WARPHEAP_HOST_DEVICE u64 control_offset() const {
    return access_blocks_offset() + u64{8 * spread} * Config.access_blocks;
  }
  WARPHEAP_HOST_DEVICE u64 counts_offset() const {
    return control_offset() + 8 * (3 * spread + align_up(orders + sizes_of_failed_searches, spread));
  }
  WARPHEAP_HOST_DEVICE u64 rounds_offset() const { return counts_offset() + 8 * spread * count_rows; }
  WARPHEAP_HOST_DEVICE u64 run_list_offset() const { return rounds_offset() + 8 * spread; }
  /// The most runs that a list has: at least one for each lane of a warp. With pages of
  /// 4 KiB the list takes less than a ten-thousandth of the pool.
  WARPHEAP_HOST_DEVICE u32 run_list_entries() const {
    u32 const share = units_ / 16;
    if (share < 32) return 32;
    return share < most_list_entries ? share : most_list_entries;
  }
  WARPHEAP_HOST_DEVICE u64 metadata_bytes() const {
    return run_list_offset() + align_up(u64{4} * run_list_entries(), 128);
  }

  WARPHEAP_DEVICE atomic_ref<u64> page(u32 page) const { return atomic_ref<u64>{words()[page]}; }
  WARPHEAP_DEVICE atomic_ref<u64> region(u32 region) const { return atomic_ref<u64>{at(regions_offset())[region]}; }
  WARPHEAP_DEVICE atomic_ref<u64> access_block(u32 which) const {
    return atomic_ref<u64>{at(access_blocks_offset())[u64{spread} * which]};
  }
  WARPHEAP_DEVICE atomic_ref<u32> field(u32 page, u32 segment) const {
    return atomic_ref<u32>{fields()[u64{page} * layout::fields + segment]};
  }
  /// The access block that requests turn to after the open ones: a hint.
  WARPHEAP_DEVICE atomic_ref<u64> active_access_block() const { return atomic_ref<u64>{*at(control_offset())}; }
  /// Words of the search for runs (runs.hpp): what one searcher at a time changes, and hints.
  enum class run_control : u32 {
    mutex,
    answer,      ///< of the last search
    last_asked,  ///< runs that the last round asked for; the mutex's owner keeps it
    used_above,  ///< a hint: pages at the end that were searched and had no room left
    searches     ///< that were made
  };
  WARPHEAP_DEVICE atomic_ref<u64> run_word(run_control which) const {
    return atomic_ref<u64>{at(control_offset())[spread + static_cast<u32>(which)]};
  }
  /// The open round of requests for runs (words.hpp), and the list that answers the last one.
  WARPHEAP_DEVICE atomic_ref<u64> open_round() const { return atomic_ref<u64>{*at(rounds_offset())}; }
  /// How many runs of round `number` need no more of the search: they are claimed or given up. One
  /// word for every second round.
  WARPHEAP_DEVICE atomic_ref<u64> runs_settled(u32 number) const {
    return atomic_ref<u64>{at(rounds_offset())[1 + number % 2]};
  }
  WARPHEAP_DEVICE atomic_ref<u32> run_list(u32 which) const {
    return atomic_ref<u32>{reinterpret_cast<u32*>(at(run_list_offset()))[which]};
  }

  /// Words of the search for chunks (search.hpp): how many searches began; and the last ones
  /// that found nothing, by order and by size.
  WARPHEAP_DEVICE atomic_ref<u64> searches_begun() const { return atomic_ref<u64>{at(control_offset())[2 * spread]}; }
  WARPHEAP_DEVICE atomic_ref<u64> failed_search(u32 which) const {
    return atomic_ref<u64>{at(control_offset())[3 * spread + which]};
  }

  // relaxed, all three: a thread that acts on it does so by compare-exchange.
  WARPHEAP_DEVICE page_word load(u32 which) const { return {page(which).load(order::relaxed)}; }
  /// The newest value of a page's word, by a read-modify-write. For the look before a pointer is
  /// said to be no block's.
  WARPHEAP_DEVICE page_word load_newest(u32 which) const { return {page(which).fetch_or(0, order::relaxed)}; }

  /// The value of any word of the table.
  WARPHEAP_DEVICE static u64 read(atomic_ref<u64> word, reading how) {
    return how == reading::newest ? word.fetch_or(0, order::relaxed) : word.load(order::relaxed);
  }

  WARPHEAP_DEVICE void add_count(count which, u64 amount) const {
    // relaxed: it is not read before the kernel ends.
    u32 const row = simt::sm_id() % count_rows;
    atomic_ref<u64>{at(counts_offset())[spread * row + static_cast<u32>(which)]}.fetch_add(amount, order::relaxed);
  }

  /// Whether a page as seen has a chunk for the request.
  WARPHEAP_HOST_DEVICE static bool has_room(page_word seen, chunk_request const& request) {
    return seen.is_free() || (!seen.is_full() && request.suits(seen.units()));
  }

  /// Takes up to `wanted` chunks of one segment of a page, whose word was `seen` lately. None if
  /// the page has no room for the request or has changed. Any lane alone.
  ///
  /// Where    inlined: for the path that is part of every kernel, whose rare parts are calls;
  ///          called: for a path that is a call
  template <path Where>
  WARPHEAP_DEVICE chunk_set take(u32 which, page_word seen, chunk_request const& request, u32 wanted) const {
    u32 const units = seen.is_free() ? request.units : seen.units();
    if (!request.suits(units)) return {};
    u32 const capacity = layout::capacity(units), low = seen.low();
    bool const flat = layout::is_flat(units);
    // Hierarchical: until a chunk comes back, the next ones are where the count says; later that
    // segment is as good as any.
    u32 const segment = flat ? 0 : low / layout::segment_chunks;
    u32 taken = flat ? low : 0;
    // relaxed: a hint; the fetch_or says what was free.
    if (!flat && low < capacity && !seen.is_free()) taken = field(which, segment).load(order::relaxed);
    u32 promised = wanted;
    if (!flat && wanted >= capacity - low) promised = capacity - low;
    u32 const free = layout::valid_mask(capacity, segment) & ~taken;
    u32 const bits = lowest_of_field(free, promised);
    u32 const next = flat ? low | bits : low + promised;
    if (next == low) return {};
    bool const fills = flat ? bits == free : next == capacity;
    u64 expected = seen.word;
    // acquire: what the last owners wrote, to these chunks or to others that lay here, happens
    // before our use; pairs with the release in try_change(), through the chain of changes
    // (scatter.S1). What they wrote to chunks of a hierarchical page while it had this size comes
    // with the field.
    if (!page(which).compare_exchange(expected, seen.with(units, next, page_fill{fills}).word, order::acquire,
                                      order::relaxed))
      return {};
    if (fills) count_full<Where>(which / region_pages, 1);
    if (flat) return {which, units, bits};
    chunk_set const got{which, units | segment << 16, bits == 0 ? 0 : claim(which, segment, bits)};
    if (popcount(got.bits) == promised) return got;
    return Where == path::called ? settle(got, promised) : settle_by_call(*this, got, promised);
  }

  /// Gives back the chunks `bits` of a segment, whose page's word was `seen` lately. Returns those
  /// that were really owned. Any lane alone; what the owners wrote happens before.
  WARPHEAP_DEVICE u32 give_back(chunk_set const& chunks, page_word seen) const {
    u32 const units = chunks.units();
    bool const flat = layout::is_flat(units);
    // In a page of another size a field's bit means another chunk, and the caller may have a stale
    // view of the page. The compare-exchange of a flat page notices that; for a hierarchical one
    // this reads the newest word. The read is under way while the fence waits.
    if (!flat) seen = load_newest(chunks.page);
    // Two words pass the owners' writes on to the next owners. A release of each would be two
    // waits.
    release_fence();
    if (!flat && seen.units() != units) return 0;
    u32 owned = chunks.bits & seen.low(), what = chunks.bits;
    if (!flat) {
      // fenced: what the owners did happens before the next owner's use; pairs with the acquire in
      // claim().
      owned = chunks.bits & field(chunks.page, chunks.segment()).fetch_and(~chunks.bits, order::fenced);
      what = popcount(owned);
    }
    if (owned == 0 && !flat) return 0;
    // fenced: as in the field; pairs with the acquire in take().
    if (owned != 0 && !seen.is_full() && try_change(chunks.page, seen, without(seen, what, flat), order::fenced))
      return owned;
    u32 const lowered = lower_by_call(*this, chunks.page, units, what);
    return flat ? lowered : owned;
  }

  /// Counts `pages` pages of a region that have become full.
  template <path Where = path::called>
  WARPHEAP_DEVICE void count_full(u32 which, u32 pages) const {
    // relaxed: counts only guide searches; scatter.F1 rests on each word's own order and on ours.
    fill_count const old{region(which).fetch_add(pages, order::relaxed)};
    if (!fill_count{old.word + pages}.counts_all(pages_of(which))) return;
    if (Where == path::called) count_full_region(which);
    else count_full_region_by_call(*this, which);
  }

  /// Withdraws `pages` full pages of a region, each of which gets room after this or is counted
  /// again (scatter.F1).
  WARPHEAP_DEVICE void withdraw_full(u32 which, u32 pages) const {
    u64 seen = region(which).load(order::relaxed);
    for (;;) {
      bool const last = fill_count{seen}.counts_all(pages_of(which));
      atomic_ref<u64> const above = access_block(which / access_block_regions_);
      if (last) above.fetch_add(fill_count::withdrawing(1), order::relaxed);
      // release: the access block's count falls before the region's; a thread that sees the page
      // with room sees both.
      if (region(which).compare_exchange(seen, seen + fill_count::withdrawing(pages), order::release, order::relaxed))
        return;
      if (last) above.fetch_add(1, order::relaxed);
    }
  }

 private:
  WARPHEAP_DEVICE void count_full_region(u32 which) const {
    access_block(which / access_block_regions_).fetch_add(1, order::relaxed);
  }
  WARPHEAP_COLD static void count_full_region_by_call(table self, u32 which) { self.count_full_region(which); }

  /// Sets bits of a field; returns those that are ours now.
  WARPHEAP_DEVICE u32 claim(u32 which, u32 segment, u32 bits) const {
    // acquire: pairs with the release in give_back().
    return bits & ~field(which, segment).fetch_or(bits, order::acquire);
  }

  /// Settles a promise of `promised` chunks, of which `got` has only a part or none: finds at least
  /// one chunk, and takes the rest of the promise back.
  WARPHEAP_DEVICE chunk_set settle(chunk_set got, u32 promised) const {
    u32 const capacity = layout::capacity(got.units());
    u32 const segments = (capacity + layout::segment_chunks - 1) / layout::segment_chunks;
    u32 segment = got.segment();
    WARPHEAP_NO_UNROLL
    while (got.bits == 0) {
      // scatter.S2: there are chunks for us. A thread that is faster at one that we see takes it by
      // a promise of its own.
      segment = segment + 1 < segments ? segment + 1 : 0;
      u32 const free = layout::valid_mask(capacity, segment) & ~field(got.page, segment).load(order::relaxed);
      if (free == 0) {
        if (segment == 0) simt::pause(20);
        continue;
      }
      u32 const bits = lowest_of_field(free, promised);
      got = {got.page, got.units() | segment << 16, claim(got.page, segment, bits)};
    }
    if (u32 const rest = promised - popcount(got.bits)) lower(got.page, got.units(), rest);
    return got;
  }

  WARPHEAP_COLD static chunk_set settle_by_call(table self, chunk_set got, u32 promised) {
    return self.settle(got, promised);
  }

  /// One attempt to set to `low` what is taken of a page.
  WARPHEAP_DEVICE bool try_change(u32 which, page_word seen, u32 low, order how) const {
    u64 expected = seen.word;
    // how: fenced, by give_back(), or release: what the owners wrote happens before the next
    // owner's use; pairs with the acquire in take(). For hierarchical pages: before the thread that
    // sets the page up anew.
    return page(which).compare_exchange(expected, lowered(seen, low).word, how, order::relaxed);
  }

  /// The word of a page after chunks came back: free if they were the last; of the next version if
  /// the page got room (scatter.S4).
  WARPHEAP_HOST_DEVICE static page_word lowered(page_word seen, u32 low) {
    bool const emptied = low == 0 && Config.reset_freed_pages;
    page_word const next =
        emptied ? seen.with(0, 0, page_fill::has_room) : seen.with(seen.units(), low, page_fill::has_room);
    return emptied || seen.is_full() ? next.with_room() : next;
  }

  /// What is taken of a page, less `what`: bits of a flat page, a number of chunks of a
  /// hierarchical one.
  WARPHEAP_HOST_DEVICE static u32 without(page_word seen, u32 what, bool flat) {
    return flat ? seen.low() & ~what : seen.low() - what;
  }

  /// The loop behind give_back(): takes `what` off a page's word. Returns what was really there.
  WARPHEAP_DEVICE u32 lower(u32 which, u32 units, u32 what) const {
    bool const flat = layout::is_flat(units);
    bool withdrawn = false;
    WARPHEAP_NO_UNROLL
    for (;;) {
      page_word const seen = load(which);
      // A flat page of another size was cleaned up: these chunks were free already. For a
      // hierarchical page the bits of its field have said so themselves.
      u32 owned = what;
      if (flat) owned = seen.units() == units ? seen.low() & what : 0;
      bool const makes_room = owned != 0 && seen.is_full();
      // scatter.F1: the page is withdrawn before it gets room.
      if (makes_room && !withdrawn) withdraw_full(which / region_pages, 1);
      if (withdrawn && !makes_room) count_full(which / region_pages, 1);
      withdrawn = makes_room;
      if (owned == 0) return 0;
      // release: the owners' writes, as above, and a withdrawal before the room (scatter.F1); pairs
      // with the acquire in take().
      if (try_change(which, seen, without(seen, what, flat), order::release)) return owned;
    }
  }

  WARPHEAP_COLD static u32 lower_by_call(table self, u32 which, u32 units, u32 what) {
    return self.lower(which, units, what);
  }

  WARPHEAP_DEVICE u64* at(u64 offset) const { return reinterpret_cast<u64*>(base_ + offset); }

  u32 access_block_regions_ = 0;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::scatter_parts
