// SPDX-License-Identifier: Apache-2.0
// The particles at the start: the same number of each species in every cell, at random places.
// Species drift in turn to the right and to the left. Two streams through each other are unstable:
// their energy goes into waves, and particles bunch.
#pragma once

#include "move.hpp"
#include "physics.hpp"

namespace warpheap::tool::pic { inline namespace WARPHEAP_BACKEND {

/// Kernel: puts the particles of species `which` into the lists of all super cells. A particle
/// without memory is stranded.
struct populate {
  static constexpr u32 most_threads = list_threads, resident_blocks = list_blocks;

  u64 seed;
  u32 each;         ///< particles of a cell
  bool both_sides;  ///< every second particle drifts the other way: there is only one species

  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, list_table table, u32 which, tally_slot* total) const {
    u32 const mine = warp_of_grid();
    if (mine >= table.space.super_cells()) return;
    constexpr u32 cells = 1u << (super_cell_x_log2 + super_cell_y_log2);
    u32 const wanted = cells * each;
    particle_list& list = table.of(which)[mine];
    move_tally tally;
    u64* last = &list.head;
    u32 count = 0;
    while (count < wanted) {
      frame here{nullptr, table.slots};
      if (simt::lane_id() == 0) {
        here = new_frame(heap, table, tally);
        *last = reinterpret_cast<u64>(here.memory);
      }
      simt::sync_warp(full_mask);  // the frame's link is written
      here.memory = simt::shuffle(full_mask, here.memory, 0);
      if (!here) break;
      u32 const used = wanted - count < table.slots ? wanted - count : table.slots;
      for (u32 slot = simt::lane_id(); slot < used; slot += warp_lanes)
        here.set(slot, draw(table.space, which, mine, count + slot));
      last = &here.link();
      count += used;
    }
    if (simt::lane_id() != 0) return;
    list.count = count;
    tally.stranded += wanted - count;
    add(total, tally);
  }

 private:
  /// Particle `index` of a super cell.
  WARPHEAP_DEVICE particle draw(plane const& space, u32 which, u32 super_cell, u32 index) const {
    u32 const cell = index / each, row_log2 = space.x_log2 - super_cell_x_log2;
    u32 const x =
        ((super_cell & ((1u << row_log2) - 1)) << super_cell_x_log2) + (cell & ((1u << super_cell_x_log2) - 1));
    u32 const y = (super_cell >> row_log2 << super_cell_y_log2) + (cell >> super_cell_x_log2);
    u32 const id = (which * space.cells() + space.node(x, y)) * each + index % each;
    random_sequence random{seed ^ mix(id + 1)};
    u32 const at_x = x << (32 - space.x_log2) | random.next() >> space.x_log2;
    u32 const at_y = y << (32 - space.y_log2) | random.next() >> space.y_log2;
    bool const to_the_left = (both_sides ? id : which) % 2 == 1;
    float const across = (to_the_left ? -drift : drift) + bell(random);
    return {at_x, at_y, across, bell(random), id};
  }

  /// About normally distributed: the sum of four uniform numbers.
  WARPHEAP_DEVICE static float bell(random_sequence& random) {
    u32 sum = 0;
    for (u32 i = 0; i < 4; ++i) sum += random.next() >> 10;
    constexpr float unit = 1.0f / (1 << 22), deviation = 0.57735027f;
    return (static_cast<float>(sum) * unit - 2) * (spread / deviation);
  }
};

}}  // namespace warpheap::tool::pic::WARPHEAP_BACKEND
