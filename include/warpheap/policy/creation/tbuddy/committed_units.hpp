// SPDX-License-Identifier: Apache-2.0
// Which units of a pool that grows are committed. Set-up is in table.hpp. Here are growth, beside
// whatever else runs, and what trimming needs, at rest.
//
// A unit is added as a block is freed (tbuddy.P3), so calls never ask whether it has memory.
#pragma once

#include "supply.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace tbuddy_parts {

/// Units of a heap. Stateless; `table` is the heap.
template <class Table>
class committed_units {
 public:
  WARPHEAP_DEVICE explicit committed_units(Table const& table) : table_{table} {}

  /// Makes blocks of the units in [first, end) that are marked uncommitted, for one of `threads`,
  /// which is `thread`. Others stay as they are. Any lanes.
  WARPHEAP_COLD void add(u32 first, u32 end, u32 thread, u32 threads) const {
    for (u32 unit = first + thread; unit < end; unit += threads)
      if (table_.mark_committed(page_of(unit))) give_back(page_of(unit), page_of(unit + 1));
  }

  /// Whether nothing in a unit is owned.
  WARPHEAP_DEVICE bool is_free(u32 unit) const {
    return table_.tree().available_at(page_of(unit), Table::unit_order) != 0;
  }

  /// Takes the block that a unit is free in, and gives back what of it lies below page `from`.
  /// Returns the page where the block ends; 0 if the unit is not free. One lane, which runs alone.
  WARPHEAP_COLD u32 take(u32 unit, u32 from) const {
    auto const tree = table_.tree();
    u32 const node = tree.available_at(page_of(unit), Table::unit_order);
    if (node == 0) return 0;
    u32 const order = tree.order_of(node), begin = tree.first_page(node);
    if (!table_.semaphore(order).try_wait(1)) return 0;
    if (!tree.try_take(node)) {
      table_.semaphore(order).signal(1, 0);
      table_.raise_epoch();  // tbuddy.P2
      return 0;
    }
    if (begin < from) give_back(begin, from);
    return begin + (1u << order);
  }

 private:
  WARPHEAP_DEVICE static u32 page_of(u32 unit) { return unit << Table::unit_order; }

  /// Gives back pages that are ours, as the fewest blocks that they form.
  WARPHEAP_DEVICE void give_back(u32 first, u32 end) const {
    while (first < end) {
      u32 const fits = log2_floor(end - first), aligned = first != 0 ? lowest_bit(first) : fits;
      u32 const order = aligned < fits ? aligned : fits;
      block_supply<Table>{table_}.release(table_.tree().node_of(first, order));
      first += 1u << order;
    }
  }

  Table table_;
};

/// The first `bytes` bytes as units.
WARPHEAP_HOST_DEVICE constexpr u32 units_in(u64 bytes) { return static_cast<u32>(bytes / unit_bytes); }

/// A grid for `units` units.
WARPHEAP_HOST constexpr launch_shape shape_for(u32 units) { return {units <= 32 ? 1u : 64u, 64}; }

/// Kernel: add() of the units in [first, end). A second launch does nothing.
struct add_units {
  template <class Table>
  WARPHEAP_DEVICE void operator()(Table table, u32 first, u32 end, u64* committed) const {
    u32 const threads = simt::block_dim() * simt::grid_dim(), thread = static_cast<u32>(global_thread_index());
    committed_units{table}.add(first, end, thread, threads);
    // relaxed: a reset that reads it is a later kernel. The maximum: growth may come in any order.
    if (thread == 0) atomic_ref<u64>{*committed}.fetch_max(end * unit_bytes, order::relaxed);
  }
};

/// Kernel: raises `end` to the end of the last of the first `units` units that is in use, in bytes.
struct find_used_end {
  template <class Table>
  WARPHEAP_DEVICE void operator()(Table table, u32 units, u64* end) const {
    u32 const threads = simt::block_dim() * simt::grid_dim();
    for (u32 unit = static_cast<u32>(global_thread_index()); unit < units; unit += threads)
      // relaxed: no other kernel runs.
      if (!committed_units{table}.is_free(unit))
        atomic_ref<u64>{*end}.fetch_max(u64{unit + 1} * unit_bytes, order::relaxed);
  }
};

/// Kernel of one warp: marks the free units in [first, end) uncommitted, and counts the others.
struct decommit_units {
  template <class Table>
  WARPHEAP_DEVICE void operator()(Table table, u32 first, u32 end, u64* stay) const {
    for (u32 unit = first; unit < end;) {
      u32 until = 0;
      if (simt::lane_id() == 0) until = committed_units{table}.take(unit, first << Table::unit_order);
      u32 const taken = simt::shuffle(full_mask, until, 0) >> Table::unit_order;
      for (u32 each = unit + simt::lane_id(); each < taken; each += warp_lanes)
        table.mark_uncommitted(each << Table::unit_order);
      if (taken == 0 && simt::lane_id() == 0) atomic_ref<u64>{*stay}.fetch_add(1, order::relaxed);
      unit = taken != 0 ? taken : unit + 1;
    }
  }
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::tbuddy_parts
