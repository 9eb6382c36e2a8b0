// SPDX-License-Identifier: Apache-2.0
// What a free brings back: blocks to a bin, units to the class's semaphore, an emptied bin to its
// chunk.
//
// A bin may be reclaimed when all of its blocks are free and no caller counts on them. So a thread
// that reclaims it takes a bin's worth of units from the semaphore first: then the blocks of other
// bins cover all units that are out. Only then is the bin killed, unlinked, and queued. A barrier
// of the arena's SRCU waits for the read sections in which a reader may stand on the bin, and the
// thread that makes that barrier gives the pages back. Most callers delegate it to a thread that is
// about to wait anyway.
//
//   bins.Y1  units are signalled after the free blocks are raised and their bin is linked
//       (bins.K1).
//   bins.Y2  a bin dies only while the thread that kills it holds `capacity` units taken back for
//       it.
//   bins.Y3  a thread that leaves a bin empty, or may have, sets the class's idle bit and then
//       looks at the watch of the pages (bins.A1, bins.W1).
//   bins.Y4  a free that may bring a bin to or from 0 free blocks, or to empty, is made inside a
//       read section (bins.K3): the bin is still one of the class when the free looks at it again.
//
// Source: Gelado and Garland 2019, sections 4.2 and 4.2.1.
#pragma once

#include "faults.hpp"
#include "list.hpp"
#include "page_store.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace bins {

/// Bits of one bitmap word of a bin, which their owners have cleared and not yet counted as free.
struct cleared_blocks {
  u32 word;
  u64 bits;

  WARPHEAP_DEVICE u32 count() const { return popcount(bits); }
};

template <class Layout, class Supply, class Faults>
class recycler {
 public:
  using table_type = far_table<Layout>;
  using list_type = bin_list<Layout, far_place>;

  /// Gives back blocks of a bin of role `role`. If the bin does not, or no longer, have that role,
  /// the cleared bits are not the caller's: they are set again, and the answer is false (bins.N6).
  /// Any lane alone.
  WARPHEAP_DEVICE static bool try_free(table<Layout> const& table, u32 page, bin_role role, cleared_blocks blocks) {
    u32 const size_class = role.size_class();
    bin_view const bin = table.bin(page);
    // relaxed: the bits were released, and the signal releases the count.
    u64 seen = bin.life().load(order::relaxed);
    while (bin_life::role_of(seen).word == role.word &&
           bin_life::stays_listed(seen, blocks.count(), Layout::capacity(size_class))) {
      if (bin.life().compare_exchange(seen, seen + blocks.count() * bin_life::one_block, order::relaxed,
                                      order::relaxed)) {
        signal(table, role.arena(), size_class, blocks.count());
        return true;
      }
    }
    return free_at_the_ends(table.as_far(), page, role, blocks);
  }

  /// For rare frees, whatever the state of the bin. A bin that becomes empty is left to the next
  /// search for pages.
  WARPHEAP_DEVICE static bool free_and_keep(table_type table, u32 page, bin_role role, cleared_blocks blocks) {
    if (count_and_keep(table, page, role, blocks.count())) return true;
    take_back(table, page, blocks);
    return false;
  }

  /// Signals units (bins.Y1), and tells threads that search for the class.
  template <class Place>
  WARPHEAP_DEVICE static void signal(basic_table<Layout, Place> const& table, u32 arena, u32 size_class, u32 units,
                                     u32 promised = 0) {
    table.semaphore(arena, size_class).signal(units, promised);
    table.class_watch(size_class).room_appeared();
  }

  /// Says that a bin of the class may be empty.
  WARPHEAP_DEVICE static void note_idle(table_type table, u32 arena, u32 size_class) {
    // bins.Y3. acquire, release: bins.W1.
    table.room(arena).fetch_or(room_word::idle(size_class), order::acq_rel);
    table.pages_watch().room_appeared();
  }

  /// Reclaims the empty bins of the classes noted as idle, and waits until all dead bins are back
  /// in their chunks. False if a bin could not be reclaimed because a call in progress counts on
  /// its units, or is about to give them back. Any lane alone, holding nothing.
  WARPHEAP_COLD static bool sweep(table_type table, u32 arena) {
    // acquire, release, also below: bins.W1.
    u64 const seen = table.room(arena).fetch_add(0, order::acq_rel);
    bool all = true;
    for (u64 idle = room_word::idle_classes(seen); idle != 0; idle &= idle - 1)
      all = sweep_class(table, arena, lowest_bit(idle)) && all;
    if (room_word::in_limbo(table.room(arena).fetch_add(0, order::acq_rel)) != 0)
      table.srcu(arena).barrier(reclaim{table});
    return all;
  }

 private:
  struct reclaim {
    table_type table;

    WARPHEAP_DEVICE void operator()(srcu_node& node) const { end_of_bin(table, bin_view::of(node)); }
  };

  /// Ends a bin that no reader stands on.
  WARPHEAP_COLD static void end_of_bin(table_type table, bin_view bin) {
    bin_role const role = bin.role();
    bin.wait_for_owners(Layout::words(role.size_class()));
    page_store<Layout, Supply>{table, role.arena()}.give_back(bin.number().load(order::relaxed));
  }

  /// bins.Y4. As try_free().
  WARPHEAP_COLD static bool free_at_the_ends(table_type table, u32 page, bin_role role, cleared_blocks blocks) {
    u32 const arena = role.arena(), size_class = role.size_class(), capacity = Layout::capacity(size_class);
    auto const srcu = table.srcu(arena);
    u32 const section = srcu.read_lock();
    if (!list_type{table, arena, size_class}.put(page, blocks.count())) {
      srcu.read_unlock(section);
      take_back(table, page, blocks);
      return false;
    }
    signal(table, arena, size_class, blocks.count());
    bool const empty = is_empty(table, page, capacity);
    // The class keeps free blocks for up to `idle_bins` bins, and none beyond.
    u64 const kept = u64{Layout::config.idle_bins} * capacity;
    bool const reclaimed = empty && table.semaphore(arena, size_class).available() >= kept + capacity &&
                           try_retire(table, page, arena, size_class);
    srcu.read_unlock(section);
    if (reclaimed) {
      srcu.conditional_barrier(reclaim{table});
      table.pages_watch().room_appeared();  // bins.W1: after the bin was counted as in limbo
    } else if (empty) {
      note_idle(table, arena, size_class);
    }
    return true;
  }

  /// Counts blocks as free, and the bin as one that may be empty. False if it is not of that role.
  WARPHEAP_COLD static bool count_and_keep(table_type table, u32 page, bin_role role, u32 blocks) {
    u32 const arena = role.arena(), size_class = role.size_class();
    auto const srcu = table.srcu(arena);
    u32 const section = srcu.read_lock();  // bins.Y4
    bool const ours = list_type{table, arena, size_class}.put(page, blocks);
    if (ours) signal(table, arena, size_class, blocks);
    srcu.read_unlock(section);
    if (ours) note_idle(table, arena, size_class);
    return ours;
  }

  /// Sets bits again that a caller cleared because it took the bin for another. Blocks that others
  /// have claimed meanwhile stay theirs, and as many are counted as free. Any lane alone.
  WARPHEAP_DEVICE static void take_back(table_type table, u32 page, cleared_blocks blocks) {
    // bins.N6: a live bin keeps its role for as long as we have cleared bits of it.
    bin_role const role = table.newest_role(page);
    if (!role.is_live()) return;  // no bin, and what was cleared there was no block
    // acquire, release: as in claim() and give_back(), whose places in the chain we have taken.
    u64 const there = table.bin(page).bits(blocks.word).fetch_or(blocks.bits, order::acq_rel);
    u32 const claimed = popcount(there & blocks.bits);
    if (claimed != 0) count_and_keep(table, page, role, claimed);
  }

  /// Whether a bin seems empty. relaxed: a thread that makes it empty later looks itself, and
  /// try_retire() checks the answer.
  WARPHEAP_DEVICE static bool is_empty(table_type table, u32 page, u32 capacity) {
    return bin_life::free_blocks(table.bin(page).life().load(order::relaxed)) == capacity;
  }

  /// Kills and queues a bin that was seen empty. False if its units or its blocks are not all there
  /// any more. Inside a read section that began when the bin was one of the class.
  WARPHEAP_DEVICE static bool try_retire(table_type table, u32 page, u32 arena, u32 size_class) {
    u32 const capacity = Layout::capacity(size_class);
    bin_view const bin = table.bin(page);
    // bins.A2: before the units are taken, so that a search that finds none of them finds this.
    // acquire, release: bins.W1.
    table.room(arena).fetch_add(room_word::one_in_limbo, order::acq_rel);
    bool const ours = Faults::take_all(table.semaphore(arena, size_class), capacity);
    if (!ours || !bin.try_kill({arena, size_class}, capacity)) {
      if (ours) signal(table, arena, size_class, capacity);
      table.room(arena).fetch_sub(room_word::one_in_limbo, order::acq_rel);
      return false;
    }
    list_type{table, arena, size_class}.remove(page);
    Faults::retire(table.srcu(arena), bin.node(), reclaim{table});
    return true;
  }

  /// Queues every empty bin of a class; the caller makes the barrier.
  WARPHEAP_DEVICE static bool sweep_class(table_type table, u32 arena, u32 size_class) {
    // bins.A1: cleared before we look at the bins. acquire: bins that were emptied before the bit
    // was set are seen empty; pairs with note_idle().
    table.room(arena).fetch_and(~room_word::idle(size_class), order::acq_rel);
    list_type const list{table, arena, size_class};
    auto const srcu = table.srcu(arena);
    bool all = true;
    u32 const section = srcu.read_lock();
    for (u32 page = list.first(); page != 0; page = list.after(page)) {
      if (is_empty(table, page, Layout::capacity(size_class))) all = try_retire(table, page, arena, size_class) && all;
    }
    srcu.read_unlock(section);
    if (!all) note_idle(table, arena, size_class);
    return all;
  }
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::bins
