// SPDX-License-Identifier: Apache-2.0
// Index queues, as in Ouroboros: the pool is cut into chunks, a chunk into pages of one size, a
// power of two, and each size has a queue that says where pages are free. Its items are pages, or
// chunks with free pages. A chunk gets its size when that size's queue is empty.
//
// The queues say where to look, and a bit a page says what is free. So nothing depends on what a
// queue has lost or has too much: a request that the queues cannot serve looks at every chunk once
// before it is refused, and takes a chunk without a taken page from any other size.
//
// The queues lie beside the pool, or in chunks of it that come and go (virtualised queues).
//
// Cost: 8 bytes for 32 of the smallest pages, 4 to 8 bytes an item for each queue. All requests of
// a size meet in their queue's counters. A request is rounded up to a power of two; one above a
// chunk is refused.
// Source: Winter et al. 2020. Differs: docs/design/queue.md.
#pragma once

#include "../memory_range.hpp"
#include "queue/search.hpp"
#include "queue/snapshot.hpp"
#include "report.hpp"
#include "shared/policy_base.hpp"
#include "shared/pool_units.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace creation {

/// A handle on a heap of chunks: 16 bytes, trivially copyable; all copies serve the same heap.
template <queue_config Config = queue_config{}>
class queue : public policy_base<queue<Config>, queue_parts::table<Config>> {
  static_assert(is_valid(Config),
                "queue: chunk_bytes and least_bytes are powers of two; 16 <= least_bytes <= chunk_bytes, 256 <= "
                "chunk_bytes <= 2^20, chunk_bytes < 2^16 * least_bytes");
  using table_type = queue_parts::table<Config>;
  using base_type = policy_base<queue, table_type>;
  using base_type::table_, base_type::refuse, base_type::key_of;
  using chunk_word = queue_parts::chunk_word;
  using taken_pages = queue_parts::taken_pages;

 public:
  static constexpr char const* name = name_of(Config);
  static constexpr queue_config config = Config;
  /// The most that a distribution policy may combine requests into: a chunk.
  static constexpr size_t page_bytes = Config.chunk_bytes;
  static constexpr allocator_traits traits{.alignment = 16,
                                           .self_aligned_up_to = Config.chunk_bytes,
                                           .multiples_aligned_up_to = Config.chunk_bytes,
                                           .detects_misuse = true,
                                           .exact_out_of_memory = true,
                                           .one_pass_refusals = true,
                                           .largest_bytes = Config.chunk_bytes,
                                           .metadata_permille = table_type::metadata_permille()};

  /// A page of at least `bytes` bytes; nullptr for 0, for more than a chunk, and when no suitable
  /// page stayed free during the whole call. Any lanes, converged or not.
  WARPHEAP_DEVICE void* create(size_t bytes) const {
    if (bytes == 0) return nullptr;
    if (bytes > Config.chunk_bytes) return refuse();
    u32 const size_class = table_type::class_of(bytes);
    return serve(group_by(simt::active_mask(), key_of(size_class)), size_class);
  }

  /// A page at a multiple of `alignment`, a power of two; refused if that is more than a chunk.
  WARPHEAP_DEVICE void* create_aligned(size_t alignment, size_t bytes) const {
    return create(bytes != 0 && alignment > bytes ? alignment : bytes);
  }

  /// A page for each lane of `mask`, each with its own size. All of them call, with the same mask.
  WARPHEAP_DEVICE void* create_warp(lane_mask mask, size_t bytes) const {
    bool const fits = bytes != 0 && bytes <= Config.chunk_bytes;
    lane_mask const together = simt::ballot(mask, fits);
    if (!fits) return create(bytes);
    u32 const size_class = table_type::class_of(bytes);
    return serve(group_by(together, key_of(size_class)), size_class);
  }

  /// Gives a page back. Any lanes, converged or not. nullptr does nothing; any other pointer to no
  /// owned page is counted and ignored.
  WARPHEAP_DEVICE void destroy(void* memory) const {
    if (!memory) return;
    u64 const offset = table_.offset_of(memory);
    if (offset >= table_.pool_bytes()) return table_.add_count(count::foreign_frees);
    // The class that the first word has does not change while a page of the chunk is owned
    // (queue.C2). Any other pointer takes one more round for each change of the role.
    WARPHEAP_NO_UNROLL
    for (chunk_word role = role_at(offset); !try_destroy(offset, role);) {
      chunk_word const newest = newest_role_at(offset);
      if (newest.same_role(role)) return count_misuse(offset, newest);
      role = newest;
    }
  }

  /// Bytes of the owned page at `memory`; 0 if it is none.
  WARPHEAP_DEVICE size_t usable_size(void const* memory) const {
    u64 const offset = table_.offset_of(memory);
    if (offset >= table_.pool_bytes()) return 0;
    WARPHEAP_NO_UNROLL
    for (chunk_word role = role_at(offset);;) {
      if (is_taken(offset, role)) return table_type::page_bytes(role.size_class());
      chunk_word const newest = newest_role_at(offset);
      if (newest.same_role(role)) return 0;
      role = newest;
    }
  }

  /// For slot_survey.hpp, which counts in parts.
  WARPHEAP_HOST_DEVICE u64 slot_places() const { return table_.chunks(); }
  WARPHEAP_DEVICE slot_part count_slots(size_t bytes, slot_share share) const {
    if (bytes == 0 || bytes > Config.chunk_bytes) return {};
    u32 const size_class = table_type::class_of(bytes);
    slot_part part;
    WARPHEAP_NO_UNROLL
    for (u64 chunk = share.first(slot_places()); chunk < share.end(slot_places()); ++chunk)
      part.count += table_.free_pages(static_cast<u32>(chunk), size_class);
    return part;
  }

  /// Chunks of a pool. Throws std::invalid_argument for less than a chunk, and for more chunks than
  /// allowed.
  WARPHEAP_HOST static u32 plan(size_t pool_bytes) {
    return static_cast<u32>(count_units("queue", "chunks", pool_bytes, Config.chunk_bytes, table_type::max_chunks));
  }
  /// The pool, of which a policy with queues beside it reads and writes no byte.
  WARPHEAP_HOST memory_range untouched_pool() const requires(!table_type::is_virtual) {
    return {table_.pool(), table_.pool_bytes()};
  }

#if !defined(__CUDACC_RTC__)
  /// A copy of the heap's state, which answers the host's questions: report.hpp.
  queue_parts::snapshot<Config> snapshot() const { return queue_parts::snapshot<Config>{table_}; }
#endif

 private:
  /// A page for each lane of the group, as long as one stays free. All lanes of the group call.
  WARPHEAP_DEVICE void* serve(lane_group const& group, u32 size_class) const {
    lane_mask mask = group.mask;
    WARPHEAP_NO_UNROLL
    for (;;) {
      queue_parts::supply<table_type> const supply{table_, mask, size_class};
      void* mine = nullptr;
      if (!supply.from_queue(mine) && !supply.from_free_chunks(mine)) break;
      mask = simt::ballot(mask, !mine);
      if (mine) return mine;
    }
    void* const mine = queue_parts::search<table_type>::run(table_, mask, size_class);
    return mine ? mine : refuse();
  }

  /// The first word of the chunk that an offset lies in; and its newest value.
  WARPHEAP_DEVICE chunk_word role_at(u64 offset) const {
    return table_.look_at(table_type::first_word(static_cast<u32>(offset >> table_type::chunk_log2)));
  }
  WARPHEAP_DEVICE chunk_word newest_role_at(u64 offset) const {
    return table_.newest(table_type::first_word(static_cast<u32>(offset >> table_type::chunk_log2)));
  }

  WARPHEAP_DEVICE bool is_taken(u64 offset, chunk_word role) const {
    taken_pages const page = table_.page_at(offset, role.size_class());
    // The first word need not be live: a page of another word may be owned (queue.C2).
    if (page.pages == 0) return false;
    if (table_.look_at(page.word).taken_of(role.size_class()) & page.pages) return true;
    return table_.newest(page.word).taken_of(role.size_class()) & page.pages;
  }

  /// Gives back the page at an offset of a chunk with that role. False if none is owned there, or a
  /// lower lane gave it back.
  WARPHEAP_DEVICE bool try_destroy(u64 offset, chunk_word role) const {
    u32 const size_class = role.size_class();
    taken_pages const page = table_.page_at(offset, size_class);
    if (page.pages == 0) return false;  // as in is_taken()
    lane_mask const active = simt::active_mask();
    u64 const place = reinterpret_cast<u64>(table_.pool()) + offset;
    bool const first = lowest_bit(simt::match_any(active, place)) == simt::lane_id();
    // A word's number is less than 2^30 (max_chunks), and lanes may be told different classes.
    lane_group const heap = group_by(active, key_of(size_class));
    lane_group const same = group_by(heap.mask, page.word);
    u32 const pages = union_of_groups(heap.mask, same, first ? page.pages : 0);
    // This puts the other lanes' last writes to their pages before the leader's release.
    simt::sync_warp(heap.mask);
    bool retired = false;
    u32 freed = 0;
    if (same.leads) {
      auto const cleared = table_.clear(page.word, pages, size_class);
      freed = cleared.pages;
      if (!table_type::by_pages && cleared.empty)
        retired = table_.take_class(table_type::chunk_of(page.word), size_class);
    }
    lane_mask const retiring = simt::ballot(heap.mask, retired);
    if (retired) table_.free_chunks().push(group_of(retiring), table_type::chunk_of(page.word));
    // queue.H2: the leader's clear comes before our look at the item's bit.
    simt::sync_warp(heap.mask);
    bool const mine = (simt::shuffle(heap.mask, freed, same.leader) & page.pages) != 0 && first;
    bool const queues = mine && (retiring >> same.leader & 1) == 0;
    u32 const inside = table_type::by_pages ? lowest_bit(page.pages) : 0;
    table_.index(size_class).push(heap, queues, table_type::item_of(page.word, size_class) + inside);
    // No lane returns before the pages are back: it must be served if it asks next.
    simt::sync_warp(heap.mask);
    return mine;
  }

  /// A pointer at which no page is owned, in a chunk of the role `role`.
  WARPHEAP_DEVICE void count_misuse(u64 offset, chunk_word role) const {
    bool const was_page = table_.page_at(offset, role.size_class()).pages != 0;
    table_.add_count(was_page ? count::double_frees : count::foreign_frees);
  }
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::creation
