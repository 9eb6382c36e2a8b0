// The certain answer for blocks of TBuddy, which had none: what slabs keep is brought back to it first, the free ones and the
// empty ones, be they heads or not. Only if TBuddy has none then, and no slab was left empty meanwhile, is there none.
//
//   L1  large certificate = e + 1: somebody looked at every slab and left none free nor empty, while the slab epoch was e.
//   L2  fruitless_large(order) = n: search n did that, and TBuddy had no block of the order after it, with the epoch unchanged.
#pragma once

#include "../../../platform/backoff.hpp"
#include "../../../sync/warp_aggregate.hpp"
#include "slab_supply.hpp"

namespace warpheap::inline WARPHEAP_BACKEND::chunks {

template <class Table>
class large_search {
 public:
  /// A block of the order for each lane of `mask`, as far as there are; nullptr if at one instant of the call there was none.
  /// All lanes of the mask call, with the same heap and order. `alignment` is more than a block's size, or 0.
  WARPHEAP_COLD static void* run(Table table, u32 mask, u32 order, size_t alignment) {
    return large_search{table}(mask, order, alignment);
  }

  /// Brings all that is free or empty back to TBuddy, by the lanes of `group` side by side. False if some slab was in
  /// somebody's hands. All lanes of the group call.
  WARPHEAP_DEVICE static bool bring_back(Table const& table, lane_group const& group) {
    slab_supply<Table> const supply{table};
    bool sure = true;
    WARPHEAP_NO_UNROLL
    for (u32 slab = group.rank; slab < table.slabs(); slab += group.size) {
      slab_state const now = table.load(slab);
      bool const free = now.phase() == slab_phase::free;
      if (now.phase() == slab_phase::locked) sure = false;
      if (!free && !now.empty()) continue;
      if (free ? supply.lock_free(slab) : table.lock_empty(slab)) supply.unmake(slab);
      else sure = false;
    }
    return simt::ballot(group.mask, !sure) == 0;
  }

 private:
  WARPHEAP_DEVICE explicit large_search(Table const& table) : table_{table} {}

  WARPHEAP_DEVICE void* operator()(u32 mask, u32 order, size_t alignment) const {
    // What any of us knows to have been freed, all of us find.
    simt::sync_warp(mask);
    u64 number = 0;
    // acq_rel: as in block_search.
    if (group_of(mask).leads) number = table().searches_begun().fetch_add(1, order::acq_rel) + 1;
    number = broadcast(group_of(mask), number);
    for (backoff nap;; nap.pause()) {
      lane_group const group = group_of(mask);
      u64 epoch = 0;
      u32 known = 0;
      if (group.leads) {
        epoch = table().slab_epoch();
        // acquire: pairs with the release below. relaxed: numbers alone.
        if (table().large_certificate().load(order::acquire) == epoch + 1) known = 1;
        if (alignment == 0 && table().fruitless_large(order).load(order::relaxed) > number) known = 2;
      }
      known = broadcast(group, known);
      epoch = broadcast(group, epoch);
      if (known == 2) return nullptr;
      simt::sync_warp(mask);
      bool const sure = known == 1 || bring_back(table(), group);
      simt::sync_warp(mask);
      size_t const bytes = size_t{4096} << order;
      void* const memory =
          alignment != 0 ? table().large().create_aligned(alignment, bytes) : table().large().create_warp(mask, bytes);
      mask = simt::ballot(mask, memory == nullptr);
      if (memory) return memory;
      lane_group const rest = group_of(mask);
      u32 certain = 0;
      void* found = nullptr;
      if (rest.leads && sure) found = ask_again(order, alignment);
      if (rest.leads && sure && !found && table().newest_slab_epoch() == epoch) {
        certain = 1;
        // release: what we know of the epoch is known to who believes us; pairs with the acquire above.
        table().large_certificate().store(epoch + 1, order::release);
        if (alignment == 0) table().fruitless_large(order).store(number, order::relaxed);
      }
      if (broadcast(rest, certain) != 0) return nullptr;
      mask = simt::ballot(mask, found == nullptr);
      if (found) return found;
    }
  }

  /// TBuddy's answer while no slab is on its way (P3). One lane.
  WARPHEAP_DEVICE void* ask_again(u32 order, size_t alignment) const {
    scoped_lock const alone{table().moving()};
    return alignment != 0 ? table().large().create_aligned(alignment, size_t{4096} << order)
                          : table().large().create_order(order);
  }

  /// Nothing that follows from its sizes is kept: this is off the common path.
  WARPHEAP_DEVICE Table table() const { return table_.afresh(); }

  Table table_;
};

}  // namespace warpheap::inline WARPHEAP_BACKEND::chunks
