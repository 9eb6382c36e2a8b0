// SPDX-License-Identifier: Apache-2.0
// The part of a step that allocates: particles that left their super cell go to the list of another
// one. Two kernels, one warp a list in each; in between, the lists have holes.
//
//   leave   each particle outside of its list's super cell claims the next arrival slot of its new
//           super cell; the lane that claims the first slot of a frame allocates the frame and
//           links it, and the other lanes wait for the link
//   settle  the frames of the arrivals are appended to the list, the last particles fill the holes,
//           and the frames that are then empty are freed
//
// Values of a frame's link, and of `arrivals`: 0, the next frame is not linked yet; `no_memory`,
// there was no memory for it; else its address. A lane waits only for a lane that claimed an
// earlier slot, which is therefore running. Without memory a particle stays where it is, counted,
// and tries again in the next step; positions do not depend on lists, so nothing else changes.
#pragma once

#include "particles.hpp"
#include "warpheap/platform/backoff.hpp"
#include "warpheap/sync/warp_aggregate.hpp"

namespace warpheap::tool::pic { inline namespace WARPHEAP_BACKEND {

inline constexpr u64 no_memory = 1;

/// Counts of the kernels that allocate: of one lane in a kernel, or of all since a run began.
template <class Count>
struct move_counts {
  Count mallocs = 0, frees = 0;
  Count failures = 0;  ///< calls that returned nullptr
  Count moved = 0;     ///< particles that came to another list
  Count stranded = 0;  ///< particles for which there was no memory
};

using move_tally = move_counts<u32>;
using move_totals = move_counts<u64>;

/// One of the partial totals, 128 bytes from the next. With one total for all warps, the step would
/// wait for its counters.
struct tally_slot {
  move_totals part;
  u64 padding[11];

  static constexpr u32 count = 256;
};

/// Adds each lane's tally to its warp's slot.
WARPHEAP_DEVICE inline void add(tally_slot* slots, move_tally const& part) {
  move_totals& total = slots[warp_of_grid() % tally_slot::count].part;
  add(total.mallocs, part.mallocs);
  add(total.frees, part.frees);
  add(total.failures, part.failures);
  add(total.moved, part.moved);
  add(total.stranded, part.stranded);
}

/// The memory of a frame, its link 0; or nullptr. A call that is not inlined, so that malloc's
/// registers are not added to those of the loop over particles.
template <class Heap>
WARPHEAP_COLD u8* frame_memory(Heap heap, u32 bytes) {
  auto* const memory = static_cast<u8*>(heap.malloc(bytes));
  if (memory) *reinterpret_cast<u64*>(memory) = 0;
  return memory;
}

template <class Heap>
WARPHEAP_DEVICE frame new_frame(Heap const& heap, list_table const& table, move_tally& tally) {
  frame const made{frame_memory(heap, table.frame_bytes), table.slots};
  ++(made ? tally.mallocs : tally.failures);
  return made;
}

/// Kernel: particles of species `which` that are outside of their super cell leave its list.
struct leave_super_cells {
  static constexpr u32 most_threads = list_threads, resident_blocks = list_blocks;

  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, list_table table, u32 which, tally_slot* total) const {
    u32 const mine = warp_of_grid();
    if (mine >= table.space.super_cells()) return;
    particle_list& list = table.of(which)[mine];
    u32 const count = list.count;
    move_tally tally;
    frame here = list.first(table.slots);
    for (u32 base = 0, offset = 0; base < count; base += warp_lanes) {
      u32 const slot = offset + simt::lane_id();
      bool const is_there = base + simt::lane_id() < count;
      u32 const home = is_there ? table.space.super_cell(here.x(slot), here.y(slot)) : mine;
      u32 const leavers = simt::ballot(full_mask, home != mine);
      bool const left =
          home != mine && arrive(heap, table, table.of(which)[home], group_by(leavers, home), here, slot, tally);
      u32 const moved = popcount(simt::ballot(full_mask, left));
      tally.moved += moved;
      tally.stranded += popcount(leavers) - moved;
      offset += warp_lanes;
      if (offset == table.slots) {
        here = here.next();
        offset = 0;
      }
    }
    if (simt::lane_id() == 0) list.left = tally.moved;
    else tally.moved = tally.stranded = 0;  // they are of the whole warp
    add(total, tally);
  }

 private:
  /// Moves a particle to an arrival slot of `list`; false if there is no memory. The lanes of the
  /// group move particles there together.
  template <class Heap>
  WARPHEAP_DEVICE static bool arrive(Heap const& heap, list_table const& table, particle_list& list,
                                     lane_group const& group, frame const& from, u32 slot, move_tally& tally) {
    u32 const place = aggregated_fetch_add(group, list.arrived);
    frame const to = frame_of(heap, table, list, place / table.slots, place % table.slots == 0, tally);
    if (!to) return false;
    to.set(place % table.slots, from.get(slot));
    from.id(slot) = no_particle;
    return true;
  }

  /// Frame number `number` of the arrivals. Makes the frame if `makes`, else waits for its link. No
  /// frame if there is no memory.
  template <class Heap>
  WARPHEAP_DEVICE static frame frame_of(Heap const& heap, list_table const& table, particle_list& list, u32 number,
                                        bool makes, move_tally& tally) {
    u64* link = &list.arrivals;
    for (u32 i = 0; i < number; ++i) {
      u64 const linked = wait_for_link(*link);
      if (linked == no_memory) return {};
      link = reinterpret_cast<u64*>(linked);
    }
    if (makes) {
      frame const made = new_frame(heap, table, tally);
      // release: the frame's link is 0 before any lane reads it; pairs with the acquire in
      // wait_for_link().
      atomic_ref<u64>{*link}.exchange(made ? reinterpret_cast<u64>(made.memory) : no_memory, order::release);
      return made;
    }
    u64 const linked = wait_for_link(*link);
    return {linked == no_memory ? nullptr : reinterpret_cast<u8*>(linked), table.slots};
  }

  WARPHEAP_DEVICE static u64 wait_for_link(u64& link) {
    backoff wait;
    for (;;) {
      // acquire: pairs with the release in frame_of().
      if (u64 const linked = atomic_ref<u64>{link}.load(order::acquire)) return linked;
      wait.while_working();
    }
  }
};

/// Kernel: packs the lists of species `which` again.
struct settle_super_cells {
  static constexpr u32 most_threads = list_threads, resident_blocks = list_blocks;

  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, list_table table, u32 which, tally_slot* total) const {
    u32 const mine = warp_of_grid();
    if (mine >= table.space.super_cells()) return;
    particle_list& list = table.of(which)[mine];
    if (list.left == 0 && list.arrived == 0) return;
    combined const all{list, table.slots};
    fill_holes(all);
    simt::sync_warp(full_mask);  // every lane has moved its particles before frames are freed
    if (simt::lane_id() != 0) return;
    move_tally tally;
    free_rest(heap, all, tally);
    list = {all.size != 0 ? reinterpret_cast<u64>(all.first.memory) : 0, 0, all.size};
    add(total, tally);
  }

 private:
  /// The list's frames and, behind them, those of the arrivals, as one sequence of places: place p
  /// is slot p % slots of frame p / slots.
  struct combined {
    frame first;
    u32 old_count;  ///< places that may have a particle in the list's own frames
    u32 arrivals;   ///< place of the first arrival
    u32 end;        ///< behind the last arrival
    u32 size;       ///< particles

    WARPHEAP_DEVICE combined(particle_list& list, u32 slots) : first{list.first(slots)}, old_count{list.count} {
      u32 const own_frames = (old_count + slots - 1) / slots;
      u64* last = &list.head;
      for (u32 i = 0; i < own_frames; ++i) last = reinterpret_cast<u64*>(*last);
      u64 const came = list.arrivals == no_memory ? 0 : list.arrivals;
      simt::sync_warp(full_mask);  // all lanes have read the links
      if (simt::lane_id() == 0) *last = came;
      if (own_frames == 0) first.memory = reinterpret_cast<u8*>(came);
      u32 frames = 0;
      for (u64 link = came; link != 0 && link != no_memory; link = *reinterpret_cast<u64*>(link)) ++frames;
      arrivals = own_frames * slots;
      end = arrivals + (list.arrived < frames * slots ? list.arrived : frames * slots);
      size = old_count - list.left + (end - arrivals);
      simt::sync_warp(full_mask);  // the link is there
    }

    WARPHEAP_DEVICE u32 slots() const { return first.slots; }
    WARPHEAP_DEVICE bool has_particle(frame const& here, u32 place) const {
      return place < old_count ? here.id(place % slots()) != no_particle : place >= arrivals && place < end;
    }
  };

  /// Walks over the places, 32 at a time.
  struct walker {
    frame here;
    u32 base;

    WARPHEAP_DEVICE walker(combined const& all, u32 place) : here{all.first}, base{place / warp_lanes * warp_lanes} {
      for (u32 i = all.slots(); i <= base; i += all.slots()) here = here.next();
    }
    WARPHEAP_DEVICE void step() {
      base += warp_lanes;
      if (base % here.slots == 0) here = here.next();
    }
  };

  /// Particles from place `size` on move to the free places before it: there are as many.
  WARPHEAP_DEVICE static void fill_holes(combined const& all) {
    u32 const lane = simt::lane_id();
    walker to{all, 0}, from{all, all.size};
    auto const look_for_movers = [&] {
      u32 const place = from.base + lane;
      return simt::ballot(full_mask, place >= all.size && all.has_particle(from.here, place));
    };
    auto const look_for_holes = [&] {
      u32 const place = to.base + lane;
      return simt::ballot(full_mask, place < all.size && !all.has_particle(to.here, place));
    };
    if (from.base >= all.end) return;
    u32 movers = look_for_movers(), holes = 0;
    bool looked = false;
    for (;;) {
      while (movers == 0) {
        from.step();
        if (from.base >= all.end) return;
        movers = look_for_movers();
      }
      while (holes == 0) {
        if (looked) to.step();
        looked = true;
        holes = look_for_holes();
      }
      // A place is looked at once: a place that was a hole then may have been filled since, and
      // looking again would not tell.
      u32 const pairs = popcount(holes) < popcount(movers) ? popcount(holes) : popcount(movers);
      if (lane < pairs)
        to.here.set((to.base + nth_bit(holes, lane)) % all.slots(),
                    from.here.get((from.base + nth_bit(movers, lane)) % all.slots()));
      holes = without_lowest(holes, pairs);
      movers = without_lowest(movers, pairs);
    }
  }

  WARPHEAP_DEVICE static u32 without_lowest(u32 mask, u32 count) {
    return count == popcount(mask) ? 0 : mask & ~low_mask32(nth_bit(mask, count));
  }

  /// Frees the frames that no particle is left in. One lane calls.
  template <class Heap>
  WARPHEAP_DEVICE static void free_rest(Heap const& heap, combined const& all, move_tally& tally) {
    frame here = all.first, last{nullptr, all.slots()};
    for (u32 kept = 0; kept < all.size; kept += all.slots()) {
      last = here;
      here = here.next();
    }
    while (here && reinterpret_cast<u64>(here.memory) != no_memory) {
      frame const next = here.next();
      heap.free(here.memory);
      ++tally.frees;
      here = next;
    }
    if (last) last.link() = 0;
  }
};

/// Kernel: frees the frames of species `which`.
struct drop_lists {
  static constexpr u32 most_threads = list_threads, resident_blocks = list_blocks;

  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, list_table table, u32 which, tally_slot* total) const {
    u64 const mine = global_thread_index();
    if (mine >= table.space.super_cells()) return;
    move_tally tally;
    for (frame here = table.of(which)[mine].first(table.slots); here;) {
      frame const next = here.next();
      heap.free(here.memory);
      ++tally.frees;
      here = next;
    }
    table.of(which)[mine] = {};
    add(total, tally);
  }
};

}}  // namespace warpheap::tool::pic::WARPHEAP_BACKEND
