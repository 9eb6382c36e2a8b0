// SPDX-License-Identifier: Apache-2.0
// The pages of an arena's chunks: where bins come from and go back to.
//
// An arena lists its chunks that have free pages, under a collective mutex. Lanes that need bins
// lock it together. One of them takes as many pages as there are lanes, and if a chunk is new all
// of them clear its headers. They unlock together, and each sets up a bin on its own. A chunk
// without a free page is not listed. A chunk without a bin goes back to the supply, except for one
// that an arena may keep.
//
//   bins.P1  under the mutex: linked <=> free_pages > 0; free_pages is the number of clear bits in
//       `taken`.
//   bins.P2  a chunk's table entry is its arena + 1 from before its first bin until after its last.
//   bins.P3  the room word counts a page as free from after its bit is cleared until it is taken. A
//       thread that makes pages appear tells the watch after it has raised the room word (bins.W1).
//   bins.P4  a thread that has the mutex waits for nothing but the supply, which does not use the
//       mutex.
//
// The supply is any type made of a far_table that has these members: `void open()`, called once;
// `void* create_chunk()`, a chunk aligned to its size from the pool's start, nullptr only if at one
// instant there was none; `void destroy_chunk(void*)`; `u64 chunks_available()`.
//
// Source: Gelado and Garland 2019, sections 4.2 and 4.2.2.
#pragma once

#include "table.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace bins {

/// The pages of a chunk as bits: pure functions of its two words.
namespace page_bits {

/// Bits of a word whose first is `begin` that are beyond `pages`.
WARPHEAP_HOST_DEVICE constexpr u64 beyond(u32 pages, u32 begin) {
  if (pages >= begin + 64) return 0;
  return pages <= begin ? ~u64{0} : ~low_mask(pages - begin);
}

/// Bits of word `word` that stand for no page of the chunk, or for a special one.
WARPHEAP_HOST_DEVICE constexpr u64 unusable(chunk_shape chunk, u32 word) {
  u32 const begin = word * 64, pages = chunk.pages(), specials = chunk.specials();
  return beyond(pages, begin) | (word == 0 ? low_mask(specials) : 0);
}

/// The lowest free pages of a word, up to `wanted`; or, if `run` is not 1, one run of `run` pages.
/// 0 if there are none.
WARPHEAP_HOST_DEVICE constexpr u64 choose(u64 taken, u32 run, u32 wanted) {
  if (taken == ~u64{0}) return 0;
  if (run == 1) return lowest_bits(~taken, wanted);
  u32 const at = find_run(~taken, run);
  return at < 64 ? low_mask(run) << at : 0;
}

}  // namespace page_bits

/// Pages taken of one chunk: bit i says that page `first` + i begins a bin of ours.
struct page_set {
  u32 first = 0;
  u64 bits = 0;
  bool of_new_chunk = false;  ///< the chunk is still to be entered in the table
};

/// What a call may do to find pages.
enum class chunk_use { existing, existing_or_new };

template <class Layout, class Supply>
class page_store {
 public:
  WARPHEAP_DEVICE page_store(far_table<Layout> const& table, u32 arena) : table_{table}, arena_{arena} {}

  /// Takes the pages of a bin for each lane of the group, as long as there are any. Returns the
  /// first page, or 0. They are in limbo until made() is called for them. All lanes call, and lock
  /// together.
  WARPHEAP_DEVICE u32 take(lane_group const& group, u32 size_class, chunk_use use) const {
    auto const mutex = table_.chunk_mutex(arena_);
    mutex.lock(group.mask);
    u32 mine = 0, served = 0;
    WARPHEAP_NO_UNROLL
    while (served < group.size) {
      page_set got{};
      if (group.leads) got = split_off(size_class, group.size - served, use);
      got.first = broadcast(group, got.first);
      got.bits = broadcast(group, got.bits);
      // wraps around for lanes that are served
      u32 const found = popcount(got.bits), rank = group.rank - served;
      if (broadcast(group, u32{got.of_new_chunk}) != 0) enter(group, table_.chunk_of(got.first));
      if (found == 0) break;
      if (rank < found) mine = got.first + nth_bit(got.bits, rank);
      served += found;
    }
    mutex.unlock(group.mask);
    return mine;
  }

  /// Says that `bins` bins are made of pages that take() returned, and their units signalled.
  WARPHEAP_DEVICE void made(u32 bins) const {
    // bins.A2. release: a search that finds nothing in limbo finds the units; pairs with the
    // visit's acquire.
    table_.room(arena_).fetch_sub(bins * room_word::one_in_limbo, order::acq_rel);
  }

  /// Ends a bin that no thread can reach, and frees its pages. Any lane alone.
  WARPHEAP_DEVICE void give_back(u32 page) const {
    auto const mutex = table_.chunk_mutex(arena_);
    lane_mask const alone = lane_bit(simt::lane_id());
    u32 const chunk = table_.chunk_of(page);
    bin_view const bin = table_.bin(page);
    bin_role const role = bin.role();
    u32 const pages = Layout::pages(role.size_class());
    mutex.lock(alone);
    bin.life().store(bin_life::of(role.ended(), 0), order::relaxed);
    bool const gone = put_pages(chunk, table_.page_in_chunk(page), pages);
    mutex.unlock(alone);
    u64 change = pages * room_word::one_page;
    if (gone) {
      change -= table_.chunk().usable_pages() * room_word::one_page;
      supply().destroy_chunk(table_.chunk_address(chunk));
    }
    // bins.A2, bins.P3. acquire, release: bins.W1.
    table_.room(arena_).fetch_add(change - room_word::one_in_limbo, order::acq_rel);
    table_.pages_watch().room_appeared();
  }

  /// Returns a chunk without bins to the supply. False if the arena has none. Any lane alone.
  WARPHEAP_DEVICE bool return_idle_chunk() const {
    auto const mutex = table_.chunk_mutex(arena_);
    lane_mask const alone = lane_bit(simt::lane_id());
    mutex.lock(alone);
    u32 chunk = first_listed();
    while (chunk != none && !is_idle(chunk)) chunk = next_listed(chunk);
    if (chunk != none) withdraw(chunk);
    mutex.unlock(alone);
    if (chunk == none) return false;
    supply().destroy_chunk(table_.chunk_address(chunk));
    // acquire, release: bins.W1.
    table_.room(arena_).fetch_sub(table_.chunk().usable_pages() * room_word::one_page, order::acq_rel);
    table_.pages_watch().room_appeared();
    return true;
  }

  /// Bins of `pages` pages that the arena's chunks have room for. Any lane alone.
  WARPHEAP_DEVICE u64 bins_available(u32 pages) const {
    auto const mutex = table_.chunk_mutex(arena_);
    lane_mask const alone = lane_bit(simt::lane_id());
    u64 bins = 0;
    mutex.lock(alone);
    for (u32 chunk = first_listed(); chunk != none; chunk = next_listed(chunk)) {
      for (u32 word = 0; word < 2; ++word) bins += runs_in(taken(chunk, word).load(order::relaxed), pages);
    }
    mutex.unlock(alone);
    return bins;
  }

  /// Bins of `pages` pages that a word of a chunk has room for.
  WARPHEAP_HOST_DEVICE static u32 runs_in(u64 taken, u32 pages) {
    if (pages == 1) return popcount(~taken);
    u32 found = 0;
    for (u64 run = page_bits::choose(taken, pages, 1); run != 0; run = page_bits::choose(taken, pages, 1)) {
      taken |= run;
      ++found;
    }
    return found;
  }

 private:
  static constexpr u32 none = ~0u;

  // Everything below is under the mutex.

  WARPHEAP_DEVICE atomic_ref<u64> taken(u32 chunk, u32 word) const {
    return atomic_ref<u64>{table_.header_of_chunk(chunk)->taken[word]};
  }
  WARPHEAP_DEVICE atomic_ref<u32> free_pages(u32 chunk) const {
    return atomic_ref<u32>{table_.header_of_chunk(chunk)->free_pages};
  }
  WARPHEAP_DEVICE bool is_idle(u32 chunk) const {
    return free_pages(chunk).load(order::relaxed) == table_.chunk().usable_pages();
  }
  WARPHEAP_DEVICE u32 first_listed() const { return table_.first_chunk(arena_).load(order::relaxed) - 1; }
  WARPHEAP_DEVICE u32 next_listed(u32 chunk) const {
    return atomic_ref<u32>{table_.header_of_chunk(chunk)->next}.load(order::relaxed) - 1;
  }

  /// Takes pages for up to `bins` bins of the first listed chunk that has some, or of a new chunk.
  WARPHEAP_DEVICE page_set split_off(u32 size_class, u32 bins, chunk_use use) const {
    u32 const pages = Layout::pages(size_class);
    for (u32 chunk = first_listed(); chunk != none; chunk = next_listed(chunk)) {
      page_set const got = take_of(chunk, pages, bins);
      if (got.bits != 0) return got;
    }
    u32 const made = use == chunk_use::existing_or_new ? make_chunk() : none;
    if (made == none) return {};
    page_set got = take_of(made, pages, bins);
    if (got.bits == 0) got.first = table_.first_page(made);
    got.of_new_chunk = true;
    return got;
  }

  WARPHEAP_DEVICE page_set take_of(u32 chunk, u32 pages, u32 bins) const {
    for (u32 word = 0; word < 2; ++word) {
      u64 const seen = taken(chunk, word).load(order::relaxed);
      u64 const chosen = page_bits::choose(seen, pages, bins);
      if (chosen == 0) continue;
      taken(chunk, word).store(seen | chosen, order::relaxed);
      u64 const begin = pages == 1 ? chosen : chosen & (0 - chosen);
      if constexpr (Layout::config.wide_bins) change_heads(chunk, word, chosen, begin);
      u32 const left = free_pages(chunk).load(order::relaxed) - popcount(chosen);
      free_pages(chunk).store(left, order::relaxed);
      if (left == 0) unlink(chunk);
      // bins.A2. relaxed: this makes no room.
      table_.room(arena_).fetch_add(popcount(begin) * room_word::one_in_limbo - popcount(chosen) * room_word::one_page,
                                    order::relaxed);
      return {table_.first_page(chunk) + 64 * word, begin};
    }
    return {};
  }

  /// Marks pages of a chunk as free. Returns whether the chunk goes back to the supply.
  WARPHEAP_DEVICE bool put_pages(u32 chunk, u32 page, u32 pages) const {
    u32 const word = page / 64;
    u64 const bits = low_mask(pages) << page % 64;
    taken(chunk, word).store(taken(chunk, word).load(order::relaxed) & ~bits, order::relaxed);
    u32 const before = free_pages(chunk).load(order::relaxed);
    free_pages(chunk).store(before + pages, order::relaxed);
    if (before == 0) link(chunk);
    bool const is_only_one = first_listed() == chunk && next_listed(chunk) == none;
    bool const goes = is_idle(chunk) && !(Layout::config.idle_bins != 0 && is_only_one);
    if (goes) withdraw(chunk);
    return goes;
  }

  WARPHEAP_DEVICE void change_heads(u32 chunk, u32 word, u64 cleared, u64 set) const {
    // Free pages keep their bits, so that a former block there can still be told. relaxed: a thread
    // that has a block knows the bits of the block's own bin.
    atomic_ref<u64> const heads = table_.heads(chunk, word);
    heads.store((heads.load(order::relaxed) & ~cleared) | set, order::relaxed);
  }

  /// Takes a chunk from the supply and makes it one of the arena, but for its entry in the table;
  /// `none` if there is none.
  WARPHEAP_DEVICE u32 make_chunk() const {
    // bins.A2: no search misses a chunk on its way to us. If the supply seems to have none, we ask
    // without marking limbo: threads that all ask in vain would keep one another from an answer.
    u64 const marks = supply().chunks_available() != 0 ? room_word::one_in_limbo : 0;
    // acquire, release, also below: bins.W1.
    if (marks != 0) table_.room(arena_).fetch_add(marks, order::acq_rel);
    void* const memory = supply().create_chunk();
    if (!memory) {
      if (marks != 0) table_.room(arena_).fetch_sub(marks, order::acq_rel);
      return none;
    }
    u32 const chunk = table_.chunk_at(memory);
    chunk_shape const shape = table_.chunk();
    for (u32 word = 0; word < 2; ++word) {
      taken(chunk, word).store(page_bits::unusable(shape, word), order::relaxed);
      table_.heads(chunk, word).store(0, order::relaxed);
    }
    free_pages(chunk).store(shape.usable_pages(), order::relaxed);
    link(chunk);
    // bins.P3. acquire, release: bins.W1.
    table_.room(arena_).fetch_add(shape.usable_pages() * room_word::one_page - marks, order::acq_rel);
    table_.pages_watch().room_appeared();
    return chunk;
  }

  /// Clears the headers of a new chunk, whose last owner may have written anything there, and then
  /// enters the chunk in the table. All lanes of the group call.
  WARPHEAP_DEVICE void enter(lane_group const& group, u32 chunk) const {
    // Every lane sees what the leader acquired from the chunk's last owner.
    simt::sync_warp(group.mask);
    chunk_shape const shape = table_.chunk();
    WARPHEAP_NO_UNROLL
    for (u32 page = shape.specials() + group.rank; page < shape.pages(); page += group.size)
      table_.bin(table_.first_page(chunk) + page).life().store(0, order::relaxed);
    // The leader's release covers what the other lanes have cleared.
    simt::sync_warp(group.mask);
    // bins.P2. release: the roles, for a thread that frees a pointer to no block.
    if (group.leads) table_.arena_of_chunk(chunk).store(arena_ + 1, order::release);
  }

  /// Removes a chunk without bins from the arena.
  WARPHEAP_DEVICE void withdraw(u32 chunk) const {
    unlink(chunk);
    table_.arena_of_chunk(chunk).store(0, order::relaxed);  // bins.P2
  }

  WARPHEAP_DEVICE void link(u32 chunk) const {
    auto const head = table_.first_chunk(arena_);
    u32 const second = head.load(order::relaxed);
    chunk_header* const header = table_.header_of_chunk(chunk);
    atomic_ref<u32>{header->next}.store(second, order::relaxed);
    atomic_ref<u32>{header->previous}.store(0, order::relaxed);
    atomic_ref<u32>{header->linked}.store(1, order::relaxed);
    if (second != 0) atomic_ref<u32>{table_.header_of_chunk(second - 1)->previous}.store(chunk + 1, order::relaxed);
    head.store(chunk + 1, order::relaxed);
  }

  WARPHEAP_DEVICE void unlink(u32 chunk) const {
    chunk_header* const header = table_.header_of_chunk(chunk);
    u32 const next = atomic_ref<u32>{header->next}.load(order::relaxed);
    u32 const previous = atomic_ref<u32>{header->previous}.load(order::relaxed);
    if (previous != 0) atomic_ref<u32>{table_.header_of_chunk(previous - 1)->next}.store(next, order::relaxed);
    else table_.first_chunk(arena_).store(next, order::relaxed);
    if (next != 0) atomic_ref<u32>{table_.header_of_chunk(next - 1)->previous}.store(previous, order::relaxed);
    atomic_ref<u32>{header->linked}.store(0, order::relaxed);
  }

  WARPHEAP_DEVICE Supply supply() const { return Supply{table_}; }

  far_table<Layout> table_;
  u32 arena_;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::bins
