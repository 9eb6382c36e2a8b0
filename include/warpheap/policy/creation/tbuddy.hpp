// SPDX-License-Identifier: Apache-2.0
// TBuddy: a buddy system for many threads at once, without one lock around it. A block is a power
// of two of pages. A semaphore for each order says whether there is a block, and a tree says where.
// A thread that finds no block of its order splits one of the order above into halves; as many
// threads split at a time as are needed. A thread that frees a block whose buddy is free merges the
// two. So free memory always forms the largest blocks possible, and an empty heap is as few blocks
// as its pages can form.
//
// Sizes are rounded up to a power of two of pages, and a block is aligned to its size. Lanes of a
// warp that ask for one size share larger blocks, and lanes that free the parts of a block together
// give it back as one.
//
// Cost: up to half of a block is unused if the size is no power of two of pages; at most 14 bytes a
// page; all warps that want one size meet in one semaphore, at which they compare and swap one
// after the other. nullptr is exact, and quick where it is repeated.
// Source: Gelado and Garland 2019, section 4.1. What differs: docs/design/tbuddy.md.
#pragma once

#include "../../platform/assert.hpp"
#include "../../sync/warp_aggregate.hpp"
#include "../memory_range.hpp"
#include "report.hpp"
#include "shared/policy_base.hpp"
#include "shared/pool_units.hpp"
#include "tbuddy/committed_units.hpp"
#include "tbuddy/config.hpp"
#include "tbuddy/snapshot.hpp"
#include "tbuddy/supply.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace creation {

/// A handle on a heap: 16 bytes, trivially copyable; all copies serve the same heap.
template <tbuddy_config Config = tbuddy_config{}>
class tbuddy : public policy_base<tbuddy<Config>, tbuddy_parts::table<Config.page_bytes>> {
  static constexpr size_t page_bytes = Config.page_bytes;
  static_assert(is_valid(Config), "tbuddy: page_bytes is a power of two from 16 to 1 MiB");
  using table_type = tbuddy_parts::table<page_bytes>;
  using base_type = policy_base<tbuddy, table_type>;
  using base_type::table_, base_type::refuse;
  using supply_type = tbuddy_parts::block_supply<table_type>;
  using block_owner = tbuddy_parts::block_owner;

 public:
  static constexpr char const* name = "tbuddy";
  static constexpr tbuddy_config config = Config;
  static constexpr allocator_traits traits{.alignment = page_bytes,
                                           .self_aligned_up_to = table_type::pool_alignment(),
                                           .multiples_aligned_up_to = table_type::pool_alignment(),
                                           .detects_misuse = true,
                                           .exact_out_of_memory = true};
  static constexpr bool pool_may_grow = true;

  /// A block of at least `bytes` bytes; nullptr for 0, and when there is none. Any lanes, converged
  /// or not.
  WARPHEAP_DEVICE void* create(size_t bytes) const {
    if (bytes == 0) return nullptr;
    u32 const order = table_type::order_for(bytes);
    if (order > top_order()) return refuse();
    return serve(table_, lanes_with_this_heap(simt::active_mask(), order).mask, order);
  }

  /// As create(), at a multiple of `alignment`, a power of two. If `alignment` is more than the
  /// block's size, the block is cut from a free block of `alignment` bytes. It is refused if the
  /// pool's start is not aligned to it.
  WARPHEAP_DEVICE void* create_aligned(size_t alignment, size_t bytes) const {
    if (alignment <= page_bytes || bytes == 0) return create(bytes);
    if (reinterpret_cast<u64>(table_.pool()) % alignment != 0) return refuse();
    u32 const order = order_for(bytes), aligned = order_for(alignment);
    if (aligned <= order) return create(bytes);
    return aligned <= top_order() ? serve_alone(table_, order, aligned, block_owner::caller) : refuse();
  }

  /// As create(), for all lanes of `mask` at once, each with its own size. All call with the same
  /// mask.
  WARPHEAP_DEVICE void* create_warp(lane_mask mask, size_t bytes) const {
    u32 const order = bytes != 0 ? table_type::order_for(bytes) : 0;
    bool const fits = bytes != 0 && order <= top_order();
    lane_mask const together = simt::ballot(mask, fits);
    return fits ? serve(table_, lanes_with_this_heap(together, order).mask, order) : create(bytes);
  }

  /// Gives a block back. Any lanes, converged or not. nullptr does nothing; a pointer to no live
  /// block is counted and ignored.
  WARPHEAP_DEVICE void destroy(void* memory) const {
    if (memory && !try_destroy(memory)) count_misuse(memory);
  }
  /// Gives a live block back. False if `memory` is not one.
  WARPHEAP_DEVICE bool try_destroy(void* memory) const {
    if (!table_.starts_page(memory)) return false;
    u32 const page = table_.page_of(memory), order = table_.disown(page, block_owner::caller);
    if (order == table_type::none) return false;
    destroy_together(table_, lanes_with_this_heap(simt::active_mask(), 0).mask, table_.tree().node_of(page, order));
    return true;
  }
  /// Counts a free of a pointer to no live block.
  WARPHEAP_DEVICE void count_misuse(void const* memory) const {
    bool const was_block = table_.starts_page(memory) && !table_.is_uncommitted(table_.page_of(memory));
    table_.add_count(was_block ? count::double_frees : count::foreign_frees);
  }
  /// As destroy(), without a collective.
  WARPHEAP_DEVICE void destroy_alone(void* memory) const {
    if (memory && !try_destroy_alone(memory)) count_misuse(memory);
  }
  WARPHEAP_DEVICE bool try_destroy_alone(void* memory) const { return end_alone(memory, block_owner::caller); }

  /// A block of page_bytes << order bytes for the calling lane; nullptr if there is none. No
  /// collective: the caller may hold locks that other lanes of its warp wait for, but none that a
  /// lane in another call to this heap waits for.
  WARPHEAP_DEVICE void* create_order(u32 order) const {
    return order <= top_order() ? serve_alone(table_, order, order, block_owner::caller) : refuse();
  }

  // For allocators that take their memory from this one. A block that an allocator keeps is not a
  // caller's: destroy() refuses it and usable_size() returns 0 for it, even if a caller has an old
  // pointer to its start (tbuddy.P1).

  /// As create_order(), but the allocator keeps the block.
  WARPHEAP_DEVICE void* create_kept(u32 order) const {
    return order <= top_order() ? serve_alone(table_, order, order, block_owner::allocator) : refuse();
  }
  /// Divides a block from create_kept(order) into blocks of order `smaller`, each of which is given
  /// back by itself. Any lane alone.
  WARPHEAP_DEVICE void divide_kept(void* memory, u32 order, u32 smaller) const {
    u32 const first = table_.page_of(memory);
    static_cast<void>(table_.disown(first, block_owner::allocator));
    for (u32 part = 0; part >> (order - smaller) == 0; ++part)
      static_cast<void>(table_.own(first + (part << smaller), smaller, block_owner::allocator));
  }
  /// Gives back a kept block. Any lane alone.
  WARPHEAP_DEVICE void destroy_kept(void* memory) const {
    [[maybe_unused]] bool const ours = end_alone(memory, block_owner::allocator);
    WARPHEAP_ASSERT(ours, "tbuddy: destroy_kept() of a block that was not kept");
  }

  /// The order of the smallest blocks of at least `bytes` bytes, which is not 0; and the pool's
  /// largest order.
  WARPHEAP_HOST_DEVICE static u32 order_for(size_t bytes) { return table_type::order_for(bytes); }
  WARPHEAP_HOST_DEVICE u32 top_order() const { return table_.tree().top_order(); }

  /// Bytes of the live block at `memory`; 0 if there is none.
  WARPHEAP_DEVICE size_t usable_size(void const* memory) const {
    if (!table_.starts_page(memory)) return 0;
    u32 const order = table_.newest_order_at(table_.page_of(memory));
    return order != table_type::none ? page_bytes << order : 0;
  }

  /// For slot_survey.hpp, which counts in parts.
  WARPHEAP_HOST_DEVICE u64 slot_places() const { return top_order() + 1; }
  WARPHEAP_DEVICE slot_part count_slots(size_t bytes, slot_share share) const {
    if (bytes == 0) return {};
    slot_part part;
    u32 const least = order_for(bytes);
    for (u64 order = least + share.part; order <= top_order(); order += share.parts)
      part.count += table_.semaphore(static_cast<u32>(order)).available() << (order - least);
    return part;
  }

  /// Makes blocks of the committed bytes in [from, to) of a pool that grows. Any lane alone.
  WARPHEAP_DEVICE void add_committed(u64 from, u64 to) const {
    tbuddy_parts::committed_units{table_}.add(tbuddy_parts::units_in(from), tbuddy_parts::units_in(to), 0, 1);
  }

  /// Pages of a pool. Throws std::invalid_argument for less than a page, and for more pages than
  /// buddy_tree::max_pages.
  WARPHEAP_HOST static u32 plan(size_t pool_bytes) {
    return static_cast<u32>(count_units("tbuddy", "pages", pool_bytes, page_bytes, buddy_tree::max_pages));
  }

  /// Makes everything free, in order on stream `on`; does not wait. Of a pool that grows, the first
  /// `*committed` bytes, in device memory, have memory at that time.
  WARPHEAP_HOST void initialize(stream_view on, u64 const* committed = nullptr) const {
    table_.initialize(on, committed);
  }

  /// The pool, of which the policy reads and writes no byte.
  WARPHEAP_HOST memory_range untouched_pool() const { return {table_.pool(), table_.pool_bytes()}; }

  // A pool that grows: as in slab_bitmap, in units of 2 MiB.
  /// The bytes in [from, to) have memory now: blocks are made of them, in order on stream `on`, and
  /// `*committed` is raised to `to`.
  WARPHEAP_HOST void extend(u64 from, u64 to, u64* committed, stream_view on) const {
    u32 const first = tbuddy_parts::units_in(from), end = tbuddy_parts::units_in(to);
    launch(on, tbuddy_parts::shape_for(end - first), tbuddy_parts::add_units{}, table_, first, end, committed);
  }
  /// Raises `*end` to the end of the last unit in use, of those before `committed` bytes.
  WARPHEAP_HOST void find_used_end(u64 committed, u64* end) const {
    u32 const units = tbuddy_parts::units_in(committed);
    launch(tbuddy_parts::shape_for(units), tbuddy_parts::find_used_end{}, table_, units, end);
  }
  /// No blocks are made of the bytes in [from, to) from now on. Adds to `*stay` the units there
  /// that are in use, and remain so.
  WARPHEAP_HOST void decommit(u64 from, u64 to, u64* stay) const {
    u32 const first = tbuddy_parts::units_in(from), end = tbuddy_parts::units_in(to);
    launch({1, warp_lanes}, tbuddy_parts::decommit_units{}, table_, first, end, stay);
  }

#if !defined(__CUDACC_RTC__)
  /// A copy of the heap's state, which answers the host's questions: report.hpp.
  tbuddy_parts::snapshot<page_bytes> snapshot() const { return tbuddy_parts::snapshot<page_bytes>{table_}; }
#endif

 private:
  /// The lanes of `mask` that call with this heap and `order`, or the calling one alone. Lanes of a
  /// warp may call at one place with different heaps.
  WARPHEAP_DEVICE lane_group lanes_with_this_heap(lane_mask mask, u32 order) const {
    if (!Config.shares_requests) return group_of(lane_bit(simt::lane_id()));
    return group_by(mask, this->key_of(order));
  }

  /// Gives back the live block of `owner` at `memory`. False if there is none.
  WARPHEAP_DEVICE bool end_alone(void* memory, block_owner owner) const {
    u32 const page = table_.page_of(memory);
    u32 const order = table_.starts_page(memory) ? table_.disown(page, owner) : table_type::none;
    if (order == table_type::none) return false;
    release(table_, table_.tree().node_of(page, order));
    return true;
  }

  WARPHEAP_COLD static void* serve_alone(table_type table, u32 order, u32 aligned, block_owner owner) {
    supply_type const supply{table};
    u32 const node = aligned == order ? supply.take(order) : supply.take_aligned(order, aligned);
    if (node == supply_type::none) {
      table.add_count(count::failures);
      return nullptr;
    }
    return table.own(table.tree().first_page(node), order, owner);
  }

  /// A block for each lane of `mask`, as long as there are any, else nullptr. The leader takes
  /// larger blocks, whose parts go to the lanes by rank. All lanes of the mask call.
  WARPHEAP_COLD static void* serve(table_type table, lane_mask mask, u32 order) {
    lane_group const group = group_of(mask);
    // The leader finds every block that any lane knows to have been freed.
    simt::sync_warp(mask);
    u32 mine = table_type::none, served = 0;
    while (served < group.size) {
      u32 node = supply_type::none;
      // take_for() settles every promise that it makes before it returns: the leader comes to the
      // broadcast owing nothing to other threads.
      if (group.leads) node = take_for(table, order, group.size - served);
      node = broadcast(group, node);
      if (node == supply_type::none) break;
      u32 const blocks = 1u << (table.tree().order_of(node) - order), rank = group.rank - served;
      // wraps around for a lane that was served
      if (rank < blocks) mine = table.tree().first_page(node) + (rank << order);
      served += blocks;
    }
    // The leader's acquire covers the other lanes' blocks: what the previous owners wrote happens
    // before our return.
    simt::sync_warp(mask);
    if (mine == table_type::none) {
      table.add_count(count::failures);
      return nullptr;
    }
    return table.own(mine, order, block_owner::caller);
  }

  /// A block of order `order` or larger, of at most `wanted` blocks of `order`. None only if there
  /// is no block of `order` itself.
  WARPHEAP_DEVICE static u32 take_for(table_type const& table, u32 order, u32 wanted) {
    supply_type const supply{table};
    if (supply.is_known_empty(order)) return supply_type::none;
    u32 const top = table.tree().top_order(), fits = order + log2_floor(wanted);
    for (u32 most = fits < top ? fits : top; most > order; --most) {
      if (u32 const node = supply.try_take(most); node != supply_type::none) return node;
      u32 const largest = supply.largest_in_sight(order);
      if (largest < most) most = largest + 1;
      if (largest <= order) break;
    }
    return supply.take(order);
  }

  WARPHEAP_COLD static void release(table_type table, u32 node) { supply_type{table}.release(node); }

  /// Gives back the blocks of the lanes of `mask`. Blocks that together form a larger one are given
  /// back as that one. All lanes of the mask call.
  WARPHEAP_COLD static void destroy_together(table_type table, lane_mask mask, u32 node) {
    // A lane that gives back a block for others releases only what this barrier ordered: their last
    // writes to it.
    simt::sync_warp(mask);
    bool mine = true;  // to be given back by us
    for (lane_mask merged = mask & (mask - 1); merged != 0;) {
      // Nodes have 31 bits, so a lane that is done matches no other.
      lane_mask const both = simt::match_any(mask, mine ? node / 2 : ~simt::lane_id());
      bool const merges = mine && popcount(both) == 2;
      if (merges) {
        mine = lowest_bit(both) == simt::lane_id();
        node /= 2;
      }
      merged = simt::ballot(mask, merges);
    }
    if (mine) supply_type{table}.release(node);
    // No lane returns before the blocks are back: its next request must be served even if the heap
    // is otherwise full.
    simt::sync_warp(mask);
  }
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::creation
