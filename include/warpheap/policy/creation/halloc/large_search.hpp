// SPDX-License-Identifier: Apache-2.0
// The last resort for blocks of which TBuddy had none: the free and the empty slabs, heads among
// them, go back to TBuddy first. If TBuddy has none then, there is none.
//
// All of that is done with the mutex held (halloc.P1), so what was given back stays at TBuddy until
// it is asked, except for what other callers of TBuddy take. nullptr means what TBuddy's does: at
// one instant all that it had was owned, or in the hands of a call in progress. Other searches wait
// for the mutex. They need not search if this search, which began after their call, finds nothing
// (sync/shared_pass.hpp).
#pragma once

#include "../../../platform/backoff.hpp"
#include "../../../sync/warp_aggregate.hpp"
#include "supply.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace halloc_parts {

template <class Table>
class large_search {
 public:
  /// A block of the order for each lane of `mask`; nullptr for lanes for which there is none. All
  /// lanes of the mask call, with the same heap and order. `alignment` is more than a block's size,
  /// or 0.
  WARPHEAP_COLD static void* run(Table table, lane_mask mask, u32 order, size_t alignment) {
    lane_group const group = group_of(mask);
    // The search finds every block that a lane of the group knows to be freed.
    simt::sync_warp(mask);
    u64 number = 0;
    u32 locked = 0;
    if (group.leads) {
      number = table.pass().draw();
      locked = lock(table, order, number);
    }
    if (broadcast(group, locked) == 0) return nullptr;
    // The leader's acquires cover all lanes.
    simt::sync_warp(mask);
    // Others may have brought back enough for us too.
    void* memory = ask(table, order, alignment);
    if (simt::ballot(mask, memory == nullptr) != 0) {
      bring_back(table, group);
      simt::sync_warp(mask);
      if (!memory) memory = ask(table, order, alignment);
    }
    lane_mask const refused = simt::ballot(mask, memory == nullptr);
    // Each lane's actions come before the mutex is unlocked.
    simt::sync_warp(mask);
    if (group.leads) {
      if (refused != 0 && alignment == 0) table.pass().publish(number, Table::pass_for_order(order));
      table.moving().unlock();
    }
    return memory;
  }

  /// Gives all free and empty slabs back to TBuddy. All lanes of `group` call, side by side, and
  /// one of them holds the mutex (halloc.P1).
  WARPHEAP_DEVICE static void bring_back(Table const& table, lane_group const& group) {
    slab_supply<Table> const supply{table};
    slab_state seen;
    WARPHEAP_NO_UNROLL
    for (u32 slab = group.rank; slab < table.slabs(); slab += group.size)
      if (supply.lock_unused(slab, seen)) supply.unmake(slab);
  }

 private:
  /// Waits for the mutex. False if another search has answered for us. Only searches without an
  /// alignment answer: where there is no block, there is none at a larger multiple.
  WARPHEAP_DEVICE static bool lock(Table const& table, u32 order, u64 number) {
    spin_mutex const moving = table.moving();
    for (backoff nap; !table.is_answered(Table::pass_for_order(order), number); nap.while_working())
      if (!moving.is_locked() && moving.try_lock()) return true;
    return false;
  }

  /// TBuddy's answer. Any lane alone: a thread that holds the mutex enters no collective of TBuddy.
  WARPHEAP_DEVICE static void* ask(Table const& table, u32 order, size_t alignment) {
    return alignment != 0 ? table.large().create_aligned(alignment, size_t{4096} << order)
                          : table.large().create_order(order);
  }
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::halloc_parts
