// SPDX-License-Identifier: Apache-2.0
// ScatterAlloc: the pool is cut into pages. The first request that comes to a page fixes the size
// of its chunks, and the thread that gives back the last chunk makes the page free again. A hash of
// its size, the multiprocessor and the warp names the page that a request comes to, so thousands of
// threads rarely meet.
//
// A page's state is one 64-bit word, and each change of a page, its set-up and its clean-up among
// them, is one compare-exchange: no chunk is lost or given twice in between. Cost: 1% of the pool
// in metadata. A page has up to 32 chunks of 128 bytes and more, which are taken by one load and
// one compare-exchange; smaller chunks need one operation more. A block larger than a page is a run
// of pages from the end of the heap. nullptr is certain.
//
// Sources: Eckert 2014, sections 2.4.6 and 4.3.5, after Steinberger et al. 2012. The page word, the
// counts of full pages and the certain answer are ours: docs/design/scatter.md.
#pragma once

#include "../../sync/same_object.hpp"
#include "../../sync/warp_aggregate.hpp"
#include "../memory_range.hpp"
#include "report.hpp"
#include "scatter/runs.hpp"
#include "scatter/search.hpp"
#include "scatter/slots.hpp"
#include "scatter/snapshot.hpp"
#include "shared/policy_base.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace creation {

/// A handle on a heap: 16 bytes, trivially copyable; all copies serve the same heap.
template <scatter_config Config = scatter_config{}>
class scatter : public policy_base<scatter<Config>, scatter_parts::table<Config>> {
  static_assert(
      is_valid(Config),
      "scatter: pages are a power of two of 512 bytes to 256 KiB; there are 1 to 1,024 access blocks, of which "
      "1 to all are open, regions of 1 to 64 pages, and waste factors of 1 to 64");
  using table_type = scatter_parts::table<Config>;
  using base_type = policy_base<scatter, table_type>;
  using base_type::table_;
  using layout = typename table_type::layout;
  using runs_type = scatter_parts::runs<Config>;
  using page_word = scatter_parts::page_word;
  using chunk_request = scatter_parts::chunk_request;
  using chunk_set = scatter_parts::chunk_set;
  using path = scatter_parts::path;
  using reading = scatter_parts::reading;

 public:
  using search_type = scatter_parts::search<Config>;

  static constexpr char const* name = "scatter";
  static constexpr scatter_config config = Config;
  /// What a distribution policy may combine requests into: the largest chunk.
  static constexpr size_t page_bytes = Config.page_bytes;
  // The i-th chunk lies i times its size into its page, and runs start where pages do. A chunk may
  // have the size of another request than its holder's, unless waste_factor is 1.
  static constexpr size_t padded_aligned_up_to = Config.page_bytes < 4096 ? Config.page_bytes : 4096;
  static constexpr size_t aligned_up_to = Config.waste_factor == 1 ? padded_aligned_up_to : 0;
  static constexpr allocator_traits traits{.alignment = 16,
                                           .self_aligned_up_to = aligned_up_to,
                                           .multiples_aligned_up_to = aligned_up_to,
                                           .padded_aligned_up_to = padded_aligned_up_to,
                                           .detects_misuse = true,
                                           .exact_out_of_memory = Config.reset_freed_pages,
                                           .whole_pool = Config.reset_freed_pages};

  /// A block of at least `bytes` bytes; nullptr for 0, and when there is none. Any lanes, converged
  /// or not.
  WARPHEAP_DEVICE void* create(size_t bytes) const {
    if (bytes == 0) return nullptr;
    if (bytes > layout::page_bytes) return runs_type::create(table_, pages_for(bytes), 1);
    u32 const units = units_for(bytes);
    lane_mask const active = simt::active_mask();
    return serve(active, group_by(active, key_of(units, 0)), units);
  }

  /// A block of at least `bytes` bytes at a multiple of `alignment`, a power of two; else as
  /// create().
  WARPHEAP_DEVICE void* create_aligned(size_t alignment, size_t bytes) const {
    if (alignment <= layout::unit_bytes || bytes == 0) return create(bytes);
    if (bytes > layout::page_bytes || alignment > layout::page_bytes)
      return runs_type::create(table_, pages_for(bytes), alignment);
    lane_mask const active = simt::active_mask();
    chunk_request const wish = request(units_for(bytes), static_cast<u32>(alignment) / layout::unit_bytes);
    return serve_slowly(table_, active, simt::match_any(active, key_of(wish.units, wish.alignment)), wish, 0);
  }

  /// create() for all lanes of `mask` at once, each with its own size. All call with the same mask.
  WARPHEAP_DEVICE void* create_warp(lane_mask mask, size_t bytes) const {
    bool const is_small = bytes != 0 && bytes <= layout::page_bytes;
    lane_mask const together = simt::ballot(mask, is_small);
    if (!is_small) return create(bytes);
    u32 const units = units_for(bytes);
    return serve(together, group_by(together, key_of(units, 0)), units);
  }

  /// Gives a block back. Any lanes, converged or not. nullptr does nothing; a pointer to no live
  /// block is counted and ignored.
  WARPHEAP_DEVICE void destroy(void* memory) const {
    if (!memory) return;
    block_address const at = locate<reading::lately>(memory);
    if (at.index >= block_address::run || !destroy_together(at)) destroy_rarely(table_, memory);
  }

  /// Bytes of the live block at `memory`; 0 if it is none.
  WARPHEAP_DEVICE size_t usable_size(void const* memory) const { return newest_size(table_, memory); }

  /// Blocks of `bytes` bytes that could be allocated now; exact when the heap is quiet. The lanes
  /// that are here with the same size share the work.
  WARPHEAP_DEVICE u64 available_slots(size_t bytes) const {
    if (bytes == 0) return 0;
    return count_slots_together(*this, simt::match_any(lanes_with_same(simt::active_mask(), table_), u64{bytes}),
                                bytes);
  }

  /// For slot_survey.hpp, which counts in parts.
  WARPHEAP_HOST_DEVICE u64 slot_places() const { return table_.pages(); }
  WARPHEAP_DEVICE slot_part count_slots(size_t bytes, slot_share share) const {
    u32 const first = static_cast<u32>(share.first(slot_places())), end = static_cast<u32>(share.end(slot_places()));
    if (bytes == 0) return {};
    return bytes <= layout::page_bytes
               ? scatter_parts::count_chunks<Config>(table_, request(units_for(bytes)), first, end)
               : scatter_parts::count_runs<Config>(table_, pages_for(bytes), first, end);
  }
  WARPHEAP_HOST_DEVICE u64 slots_of_run(size_t bytes, u64, u64 length) const { return length / pages_for(bytes); }

  /// Pages of a pool.
  WARPHEAP_HOST static u32 plan(size_t pool_bytes) { return static_cast<u32>(pool_bytes >> layout::page_log2); }

  /// Makes everything free, in order on stream `on`; does not wait.
  WARPHEAP_HOST void initialize(stream_view on) const {
    backend::fill_bytes(table_.metadata(), 0, table_.metadata_bytes(), on);
  }

  /// The pool, of which the policy reads and writes no byte.
  WARPHEAP_HOST memory_range untouched_pool() const { return {table_.pool(), table_.pool_bytes()}; }

#if !defined(__CUDACC_RTC__)
  /// A copy of the heap's state, which answers the host's questions: report.hpp.
  scatter_parts::snapshot<Config> snapshot() const { return scatter_parts::snapshot<Config>{table_}; }
#endif

 private:
  /// Where a pointer leads.
  struct block_address {
    u32 page;
    u32 index;  ///< of the chunk in its page, or one of these
    page_word seen;

    static constexpr u32 run = 1u << 16, nothing_there = run + 1, no_start = run + 2;
  };

  /// Also for the same `units`, which are at most 2^14: addresses have 50 bits.
  WARPHEAP_DEVICE u64 key_of(u32 units, u32 what) const { return (u64{units} << 50) + base_type::key_of() + what; }

  WARPHEAP_HOST_DEVICE static u32 units_for(size_t bytes) {
    return (static_cast<u32>(bytes) + layout::unit_bytes - 1) / layout::unit_bytes;
  }
  WARPHEAP_HOST_DEVICE static u64 pages_for(size_t bytes) { return ((bytes - 1) >> layout::page_log2) + 1; }

  /// What a request for `units` accepts: chunks whose units are a multiple of `alignment`.
  WARPHEAP_HOST_DEVICE static chunk_request request(u32 units, u32 alignment = 1) {
    u32 const least = static_cast<u32>(align_up(units, alignment)), waste = Config.waste_factor * units;
    u32 const most = waste < layout::page_units ? waste : layout::page_units;
    return {least, least < most ? most : least, alignment, layout::capacity(least)};
  }

  /// Blocks for the lanes of a group that ask for one size. Only what almost every request needs is
  /// here: the page that the hash names has room. Where a page has fewer chunks than the group has
  /// lanes, several leaders go to one page each.
  ///
  /// All lanes of `active` call together, each with its group in it. The groups share the
  /// collectives of `active`: collectives of many masks would be served one after the other.
  WARPHEAP_DEVICE void* serve(lane_mask active, lane_group const& group, u32 units) const {
    u32 leader = group.leader, rank = group.rank, wanted = group.size, part = 0;
    chunk_request const wish = request(units);
    u32 const capacity = wish.capacity;
    if (wanted > capacity) {
      part = scatter_parts::small_quotient(rank, capacity);
      u32 const first = part * capacity;
      leader = nth_bit(group.mask, first);
      rank -= first;
      wanted = wanted - first < capacity ? wanted - first : capacity;
    }
    chunk_set got{};
    if (rank == 0) {
      u32 const page = search_type{table_}.home(units, part);
      got = table_.template take<path::inlined>(page, table_.load(page), wish, wanted);
      got.page = page;
    }
    // The leader's acquire covers the others' blocks: what the old owners wrote happens before our
    // return.
    simt::sync_warp(active);
    got.page = simt::shuffle(active, got.page, leader);
    got.layout = simt::shuffle(active, got.layout, leader);
    got.bits = simt::shuffle(active, got.bits, leader);
    bool const served = rank < popcount(got.bits);
    lane_mask const unserved = simt::ballot(active, !served);
    if (!served) return serve_slowly(table_, unserved, group.mask & unserved, wish, got.page);
    return address(got, rank);
  }

  /// The rest of serve(), turn by turn: in each turn a leader takes chunks of one page and shares
  /// them out. All lanes of `active` call, whole groups.
  ///
  /// start   page near which each leader looks first
  WARPHEAP_COLD static void* serve_slowly(table_type table, lane_mask active, lane_mask group_mask, chunk_request wish,
                                          u32 start) {
    scatter self;
    self.table_ = table;
    void* mine = nullptr;
    u32 wanted = popcount(group_mask), named = search_type::none;
    WARPHEAP_NO_UNROLL
    for (;;) {
      lane_group const group = group_of(group_mask);
      chunk_set got{};
      if (group.leads) got = search_type{table.opaque()}.probe(wish, wanted, named, start);
      got.page = simt::shuffle(active, got.page, group.leader);
      got.layout = simt::shuffle(active, got.layout, group.leader);
      got.bits = simt::shuffle(active, got.bits, group.leader);
      if (got.bits != 0) {
        // wraps around for lanes that are served
        u32 const rank = group.rank - (group.size - wanted);
        if (rank < popcount(got.bits)) mine = self.address(got, rank);
        wanted -= popcount(got.bits);
      }
      lane_mask const seekers = simt::ballot(active, got.bits == 0);
      if (got.bits == 0) {
        bool certain = false;
        named = search_type{table.opaque()}.sweep(lanes_with_same(seekers, table), group.leader, wish, named, certain);
        if (certain) {
          if (group.leads) table.add_count(count::failures, wanted);
          wanted = 0;
        }
      }
      // The leader's acquire covers the others' blocks: what the old owners wrote happens before
      // our return.
      simt::sync_warp(active);
      // Whole groups leave, since the other groups may wait for long.
      active = simt::ballot(active, wanted != 0);
      if (wanted == 0) return mine;
    }
  }

  WARPHEAP_DEVICE void* address(chunk_set const& chunks, u32 rank) const {
    u32 const index = chunks.segment() * layout::segment_chunks + scatter_parts::nth_of_field(chunks.bits, rank);
    return table_.data(chunks.page) + index * chunks.units() * layout::unit_bytes;
  }

  /// Which block starts at `memory`, by its page's word. Says nothing about whether it is taken.
  template <reading How>
  WARPHEAP_DEVICE block_address locate(void const* memory) const {
    u64 const offset = reinterpret_cast<u64>(memory) - reinterpret_cast<u64>(table_.pool());
    if (offset >= table_.pool_bytes()) return {0, block_address::no_start, {}};
    u32 const page = static_cast<u32>(offset >> layout::page_log2);
    u32 const inside = static_cast<u32>(offset) & (layout::page_bytes - 1);
    // The units are those of the time when the block was handed out, if it is live and that
    // happened before us.
    page_word const seen = How == reading::newest ? table_.load_newest(page) : table_.load(page);
    u32 const wrong =
        inside % layout::unit_bytes == 0 && seen.is_free() ? block_address::nothing_there : block_address::no_start;
    if (!seen.has_chunks()) return {page, seen.is_run() && inside == 0 ? block_address::run : wrong, seen};
    u32 const index = layout::index_at(inside, seen.units());
    return {page, index != layout::no_chunk ? index : block_address::no_start, seen};
  }

  // The pointer may have come by a way that orders nothing, so a load may be stale. Words are read
  // by read-modify-writes where a size is asked for, since a stale word would give one too, and
  // before a free is refused.

  WARPHEAP_COLD static size_t newest_size(table_type table, void const* memory) {
    scatter self;
    self.table_ = table;
    block_address const at = self.locate<reading::newest>(memory);
    if (at.index == block_address::run) return u64{at.seen.low()} << layout::page_log2;
    if (at.index > block_address::run) return 0;
    u32 const field = layout::is_flat(at.seen.units())
                          ? at.seen.low()
                          : table.field(at.page, at.index / 32).fetch_or(0, order::relaxed);
    return (field >> (at.index % 32)) & 1 ? at.seen.units() * layout::unit_bytes : 0;
  }

  /// Frees a block that is no chunk, or a chunk that did not seem to be owned. Any lane alone.
  WARPHEAP_COLD static void destroy_rarely(table_type table, void* memory) {
    scatter self;
    self.table_ = table;
    block_address const at = self.locate<reading::newest>(memory);
    if (at.index == block_address::run && runs_type::destroy(table, at.page, at.seen.word)) return;
    if (at.index < block_address::run &&
        table.give_back(chunks_of(at, 1u << at.index % layout::segment_chunks), at.seen) != 0)
      return;
    table.add_count(at.index == block_address::no_start ? count::foreign_frees : count::double_frees, 1);
  }

  /// The chunks `bits` of the segment that a chunk lies in.
  WARPHEAP_DEVICE static chunk_set chunks_of(block_address const& at, u32 bits) {
    return {at.page, at.seen.units() | (at.index / layout::segment_chunks) << 16, bits};
  }

  /// Frees chunks, those of the lanes here that lie in one segment by one operation. False if the
  /// lane's chunk was not owned, as far as we saw.
  WARPHEAP_DEVICE bool destroy_together(block_address const& at) const {
    lane_mask const active = simt::active_mask();
    // A lane that sees chunks of another size in the page, since a block was freed twice, is in
    // another group.
    u32 const units = at.seen.units(), segment = at.index / layout::segment_chunks;
    u32 const slot = at.page * (layout::fields ? layout::fields : 1) + segment;
    lane_group const group = group_by(active, key_of(units, slot));
    u32 const mine = 1u << at.index % layout::segment_chunks, bits = union_of_groups(active, group, mine);
    // This puts the other lanes' last writes to their blocks before the leader's release.
    simt::sync_warp(active);
    u32 cleared = group.leads ? table_.give_back(chunks_of(at, bits), at.seen) : 0;
    cleared = simt::shuffle(active, cleared, group.leader);
    if (popcount(cleared) != group.size) count_double_frees(group, cleared, mine);
    // No lane returns before the blocks are back: it must be served if it asks next, even if the
    // heap is full but for them.
    simt::sync_warp(active);
    return (cleared & mine) != 0;
  }

  /// Counts double frees: of the lanes of a group that freed one chunk together all but one. All
  /// lanes of the group call.
  WARPHEAP_DEVICE void count_double_frees(lane_group const& group, u32 cleared, u32 mine) const {
    lane_mask const freeing = simt::ballot(group.mask, (cleared & mine) != 0);
    u32 const repeated = popcount(freeing) - popcount(cleared);
    if (group.leads && repeated != 0) table_.add_count(count::double_frees, repeated);
  }
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::creation
