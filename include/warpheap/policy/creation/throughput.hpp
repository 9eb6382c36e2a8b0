// SPDX-License-Identifier: Apache-2.0
// The whole allocator of Gelado and Garland. Sizes are rounded up to a power of two. Blocks that
// fit a bin come from UAlloc, larger ones from TBuddy, and UAlloc's chunks are blocks of TBuddy.
// Blocks of TBuddy lie at multiples of 4 KiB and those of UAlloc never do, so free sees by the
// address alone which of the two a block belongs to, without a table. (TBuddy's pages may be of 2
// KiB; then free looks at the table of chunks for addresses at odd multiples of that.)
//
// Memory moves between the two. An empty chunk goes back to TBuddy and is merged. Before any
// request fails, the empty bins and chunks that arenas keep are brought back for either.
//
//   throughput.H1  every chunk of an arena is a live block of TBuddy of a chunk's size.
//
// Cost: up to half of a block is unused if the size is no power of two; a bin of 4 KiB with blocks
// above 128 bytes loses one of them to its header.
// Source: Gelado and Garland 2019, section 4: docs/design/throughput.md says what differs.
#pragma once

#include "report.hpp"
#include "shared/bins/allocator.hpp"
#include "shared/bins/plan.hpp"
#include "shared/bins/slots.hpp"
#include "shared/pool_units.hpp"
#include "slot_survey.hpp"
#include "tbuddy.hpp"
#include "throughput/snapshot.hpp"
#include "throughput/supply.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace creation {

/// A handle on a heap: 40 bytes, trivially copyable; all copies serve the same heap.
template <ualloc_config Config = ualloc_config{}>
class throughput {
  using layout = bins::layout<Config>;
  using table_type = bins::table<layout>;
  using far_type = bins::far_table<layout>;
  static constexpr u32 large_page_bytes = Config.wide_bins && layout::largest_log2 == 10 ? 2048 : bins::page_bytes;
  using large_type = tbuddy<tbuddy_config{.page_bytes = large_page_bytes, .shares_requests = Config.shares_requests}>;

  using supply_type = throughput_parts::buddy_chunks<layout, large_type>;
  using small_type = bins::bin_allocator<layout, supply_type>;
  using slots_type = bins::slot_counter<layout, supply_type>;

 public:
  static constexpr char const* name = Config.wide_bins ? "throughput_wide" : "throughput";
  static constexpr ualloc_config config = Config;
  static constexpr allocator_traits traits{.alignment = Config.least_bytes,
                                           .self_aligned_up_to = Config.wide_bins ? 256 : 4096,
                                           // Sizes are rounded up to a power of two; wide bins'
                                           // blocks of more than 256 bytes lie at multiples of 128.
                                           .multiples_aligned_up_to = Config.wide_bins ? 128 : 4096,
                                           .detects_misuse = true,
                                           .exact_out_of_memory = true};
  static constexpr bool supports_mixed_heaps = true;
  static constexpr bool pool_may_grow = true;

  throughput() = default;

  /// A block of at least `bytes` bytes; nullptr for 0, and when there is none. Any lanes, converged
  /// or not.
  WARPHEAP_DEVICE void* create(size_t bytes) const {
    if (bytes == 0) return nullptr;
    if (bytes > layout::largest_bytes) return create_large(bytes);
    u32 const size_class = layout::class_of(static_cast<u32>(bytes));
    return small_blocks().create(group_by(simt::active_mask(), small_blocks().key_of(size_class)), size_class);
  }

  /// As create(), at a multiple of `boundary`, a power of two.
  WARPHEAP_DEVICE void* create_aligned(size_t boundary, size_t bytes) const {
    if (bytes == 0) return nullptr;
    size_t const both = bytes > boundary ? bytes : boundary;
    if (both <= layout::self_aligned_up_to) return create(both);
    bool const aligned = bytes > layout::largest_bytes ? boundary <= large_page_bytes : boundary <= bins::header_bytes;
    return aligned ? create(bytes) : create_large_aligned(table_.as_far(), boundary, bytes);
  }

  /// As create(), for all lanes of `mask` at once, each with its own size. All call with the same
  /// mask.
  WARPHEAP_DEVICE void* create_warp(lane_mask mask, size_t bytes) const {
    bool const fits = bytes != 0 && bytes <= layout::largest_bytes;
    lane_mask const together = simt::ballot(mask, fits);
    if (!fits) return create(bytes);
    u32 const size_class = layout::class_of(static_cast<u32>(bytes));
    return small_blocks().create(group_by(together, small_blocks().key_of(size_class)), size_class);
  }

  /// Gives a block back. Any lanes, converged or not. nullptr does nothing; a pointer to no live
  /// block is counted and ignored.
  WARPHEAP_DEVICE void destroy(void* memory) const {
    if (!memory) return;
    if (!may_be_large(memory)) return small_blocks().destroy(memory);
    destroy_large(memory);
  }

  /// Bytes of the live block at `memory`; 0 if there is none.
  WARPHEAP_DEVICE size_t usable_size(void const* memory) const {
    return may_be_large(memory) ? large_.usable_size(memory) : small_blocks().usable_size(memory);
  }
  /// Whether `memory` is a live block; and whether it lies in the pool.
  WARPHEAP_DEVICE bool owns(void const* memory) const { return usable_size(memory) != 0; }
  WARPHEAP_DEVICE bool contains(void const* memory) const { return large_.contains(memory); }

  /// Blocks of `bytes` bytes that could be allocated now; exact when the heap is quiet. One lane
  /// looks at every arena.
  WARPHEAP_DEVICE u64 available_slots(size_t bytes) const { return count_slots_alone(*this, bytes); }

  /// For slot_survey.hpp, which counts in parts.
  WARPHEAP_HOST_DEVICE u64 slot_places() const { return table_.arenas(); }
  WARPHEAP_DEVICE void gather_slots(size_t bytes, slot_share share) const {
    if (bytes > layout::largest_bytes) small_type::return_chunks(table_.as_far(), share);
    else if (bytes != 0) slots_type{table_}.gather(share);
  }
  WARPHEAP_DEVICE slot_part count_slots(size_t bytes, slot_share share) const {
    if (bytes == 0) return {};
    if (bytes > layout::largest_bytes) return large_.count_slots(bytes, share);
    return slots_type{table_}.count(layout::class_of(static_cast<u32>(bytes)), share);
  }

  /// Makes blocks of bytes in [from, to) of a pool that grows, which have memory. Any lane alone.
  WARPHEAP_DEVICE void add_committed(u64 from, u64 to) const {
    large_.add_committed(from, to);
    tell_of_pages();
  }
  /// Threads that search for pages are to look again: TBuddy was given some. Any lane alone.
  WARPHEAP_DEVICE void tell_of_pages() const {
    // bins.W1: a search visits every arena's word before it asks TBuddy. acquire, release: it needs
    // both.
    table_.room(table_.my_arena()).fetch_add(0, order::acq_rel);
    table_.pages_watch().room_appeared();
  }

  /// Bytes to reserve for a pool of `pool_bytes`: its pages, their metadata, and room to align
  /// them. Throws std::invalid_argument if that is less than one chunk.
  WARPHEAP_HOST static size_t required_bytes(size_t pool_bytes) {
    auto const planned = plan(pool_bytes);
    return large_type::required_bytes(pool_bytes) + table_type::words_bytes(planned.chunks, planned.arenas) + alignment;
  }

  /// The heap in memory of required_bytes(pool_bytes) bytes, which may start anywhere. initialize()
  /// must follow.
  WARPHEAP_HOST static throughput place(void* memory, size_t pool_bytes) {
    throughput made;
    made.large_ = large_type::place(memory, pool_bytes);
    u64 const words = align_up(reinterpret_cast<u64>(memory) + large_type::required_bytes(pool_bytes), alignment);
    made.table_ = plan(pool_bytes).template table<layout>(made.large_.table().pool(), reinterpret_cast<u8*>(words));
    return made;
  }

  /// Makes everything free, in order on stream `on`; does not wait. Of a pool that grows, the first
  /// `*committed` bytes, in device memory, have memory at that time.
  WARPHEAP_HOST void initialize(stream_view on, u64 const* committed = nullptr) const {
    large_.initialize(on, committed);
    backend::fill_bytes(table_.words(), 0, table_.words_bytes(), on);
    supply_type const supply{table_.as_far()};
    launch(on, {1, 1}, bins::write_place{}, table_, supply);
    launch(on, {1, 1}, throughput_parts::keep_buddy{}, supply, large_);
  }

  WARPHEAP_HOST size_t pool_bytes() const { return large_.pool_bytes(); }
  WARPHEAP_HOST size_t metadata_bytes() const { return large_.metadata_bytes() + table_.words_bytes(); }

  // A growing pool is TBuddy's, which has the same members.
  WARPHEAP_HOST void extend(u64 from, u64 to, u64* committed, stream_view on) const {
    large_.extend(from, to, committed, on);
    launch(on, {1, 1}, throughput_parts::tell_of_pages{}, *this);
  }
  WARPHEAP_HOST void decommit(u64 from, u64 to, u64* stay) const { large_.decommit(from, to, stay); }

#if !defined(__CUDACC_RTC__)
  WARPHEAP_HOST void find_used_end(u64 committed, u64* end) const {
    gather_slots_by_grid(*this, layout::largest_bytes + 1);  // chunks go back to TBuddy
    large_.find_used_end(committed, end);
  }

  using snapshot_type = throughput_parts::snapshot<layout, large_type>;
  /// A copy of the heap's state, which answers the host's questions: report.hpp.
  snapshot_type snapshot() const { return {table_, large_}; }
#endif

  WARPHEAP_HOST_DEVICE table_type const& table() const { return table_; }
  WARPHEAP_HOST_DEVICE large_type const& large() const { return large_; }

 private:
  static constexpr u64 alignment = 128;

  WARPHEAP_HOST static bins::pool_plan plan(size_t pool_bytes) {
    auto const planned = bins::plan_pool(pool_bytes, Config, backend::multiprocessors());
    if (planned.chunks == 0) refuse_pool("throughput", pool_bytes, "less than the smallest chunk");
    return planned;
  }

  WARPHEAP_DEVICE small_type small_blocks() const { return small_type{table_}; }

  /// Whether `memory` may be a block of TBuddy: it is no block of a bin.
  WARPHEAP_DEVICE bool may_be_large(void const* memory) const {
    u64 const address = reinterpret_cast<u64>(memory);
    return address % bins::page_bytes == 0 || (address % large_page_bytes == 0 && !lies_in_chunk(table_, memory));
  }

  /// Whether `memory` lies in a chunk.
  template <class Table>
  WARPHEAP_DEVICE static bool lies_in_chunk(Table const& table, void const* memory) {
    u64 const offset = reinterpret_cast<u64>(memory) - reinterpret_cast<u64>(table.pool());
    // A read-modify-write returns the newest value: the pointer may have come by a shuffle or a
    // relaxed store. relaxed: while a block is live, the entry stays as it was when the block's
    // owner got it.
    return offset < table.pool_bytes() &&
           table.arena_of_chunk(static_cast<u32>(offset >> table.chunk().log2)).fetch_or(0, order::relaxed) != 0;
  }

  WARPHEAP_DEVICE void* create_large(size_t bytes) const {
    u32 const order = large_type::order_for(bytes);
    if (order > large_.top_order()) return refuse();
    void* const memory = large_.create(bytes);
    return memory ? memory : create_large_slowly(table_.as_far(), order);
  }

  WARPHEAP_DEVICE void* refuse() const { return refuse(table_.as_far()); }
  WARPHEAP_DEVICE static void* refuse(far_type const& table) {
    table.add_count(bins::count::failures, 1);
    return nullptr;
  }

  /// The search that makes nullptr exact for blocks of TBuddy: there is none, no chunk is empty,
  /// and none becomes so meanwhile.
  WARPHEAP_COLD static void* create_large_slowly(far_type table, u32 order) {
    lane_group const group = group_by(simt::active_mask(), reinterpret_cast<u64>(table.words()) + order);
    lane_mask waiting = group.mask;
    for (backoff nap;; nap.while_working()) {
      lane_group const rest = group_of(waiting);
      large_search search{};
      if (rest.leads) search.begin(table);
      search = {broadcast(rest, search.watched), broadcast(rest, search.state)};
      // Every lane sees what the leader saw come back.
      simt::sync_warp(waiting);
      if (search.state == large_search::known_exhausted) return refuse(table);
      void* const memory = supply_type{table}.buddy().create_warp(waiting, u64{large_page_bytes} << order);
      waiting = simt::ballot(waiting, memory == nullptr);
      if (memory) return memory;
      u32 certain = 0;
      if (group_of(waiting).leads) certain = search.ends(table);
      if (broadcast(group_of(waiting), certain) != 0) return refuse(table);
    }
  }

  /// As create_large_slowly(), for one lane, at a multiple of `boundary`.
  WARPHEAP_COLD static void* create_large_aligned(far_type table, size_t boundary, size_t bytes) {
    supply_type const supply{table};
    if (large_type::order_for(bytes) > supply.buddy().top_order()) return refuse(table);
    for (backoff nap;; nap.while_working()) {
      void* const memory = supply.buddy().create_aligned(boundary, bytes);
      if (memory) return memory;
      large_search search{};
      search.begin(table);
      void* const again =
          search.state == large_search::known_exhausted ? nullptr : supply.buddy().create_aligned(boundary, bytes);
      if (again) return again;
      if (search.state == large_search::known_exhausted || search.ends(table)) return refuse(table);
    }
  }

  /// One round of that search, by one lane: begin() brings empty chunks back, the caller asks
  /// TBuddy, and ends() says whether nothing changed meanwhile.
  struct large_search {
    enum : u32 { known_exhausted, sure, unsure };

    u64 watched;
    u32 state;

    WARPHEAP_DEVICE void begin(far_type const& table) {
      auto const watch = table.pages_watch();
      // acquire: pairs with the release in ends(). An unwatched word is even, so it equals no
      // exhaustion note.
      watched = table.pages_exhausted_at().load(order::acquire);
      state = known_exhausted;
      if (watched != 0 && watched == watch.look()) return;
      watched = watch.watch();
      state = small_type::return_chunks(table) ? sure : unsure;
    }
    WARPHEAP_DEVICE bool ends(far_type const& table) const {
      if (state != sure || !table.pages_watch().unchanged(watched)) return false;
      // release: a thread that relies on the exhaustion note knows what we saw; pairs with the
      // acquire in begin().
      table.pages_exhausted_at().store(watched, order::release);
      return true;
    }
  };

  /// Gives a block of TBuddy back, and tells threads that search for pages.
  WARPHEAP_DEVICE void destroy_large(void* memory) const {
    if (!large_.try_destroy(memory)) return count_misuse(table_.as_far(), memory);
    lane_group const group = group_by(simt::active_mask(), small_blocks().key_of(0));
    simt::sync_warp(group.mask);
    if (group.leads) tell_of_pages();
    // No lane returns before it is known that there is room.
    simt::sync_warp(group.mask);
  }

  /// Counts a pointer that is no live block of TBuddy. One that lies in a chunk never was a
  /// caller's.
  WARPHEAP_COLD static void count_misuse(far_type table, void const* memory) {
    if (lies_in_chunk(table, memory)) table.add_count(bins::count::foreign_frees, 1);
    else supply_type{table}.buddy().count_misuse(memory);
  }

  large_type large_;
  table_type table_;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::creation
