// SPDX-License-Identifier: Apache-2.0
// Particles of `warpheap pic` and where they live. The plane is cut into super cells of 8 by 4
// cells; each species has a list of frames for each super cell, as in PIConGPU. A frame is one
// block of the heap:
//
//   | next | x, y of every slot | vx, vy | id |
//
// The arrays lie one after the other, so that a warp reads 128 bytes in a row.
//
// Between steps all frames of a list are full but the last. Each list has a warp to itself, and
// each slot a lane.
//
// A position is 32 bits a coordinate, as a part of the plane. Its highest bits are the cell, and
// crossing the edge is overflow. Nothing that is computed from it depends on the lane that computes
// it. So runs agree bit for bit, whatever the allocator and the schedule.
//
//   pic.P1  between steps, places [0, count) of a list hold particles, and the list has just the
//       frames of these places.
//   pic.P2  a position is absolute, and a list is only where a particle is looked for. A particle
//       that found no memory stays in its old list, is counted, and moves in a later step. So
//       running out changes no trajectory.
//   pic.P3  while particles leave, a list's own frames are changed by its own warp alone; other
//       warps change arrivals, arrived and the slots that they claimed.
//   pic.P4  a lane waits for the link of a frame only if the frame's first slot was claimed before
//       its own: it waits for a lane that runs.
#pragma once

#include "warpheap/heap/allocator.hpp"
#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/util/bits.hpp"

namespace warpheap::tool::pic { inline namespace WARPHEAP_BACKEND {

inline constexpr u32 super_cell_x_log2 = 3, super_cell_y_log2 = 2;

struct particle {
  u32 x, y;
  float vx, vy;
  u32 id;
};

/// The id of a slot without a particle.
inline constexpr u32 no_particle = ~0u;

/// The plane, periodic; sides are powers of two.
struct plane {
  u32 x_log2, y_log2;

  WARPHEAP_HOST_DEVICE u32 cells_x() const { return 1u << x_log2; }
  WARPHEAP_HOST_DEVICE u32 cells_y() const { return 1u << y_log2; }
  WARPHEAP_HOST_DEVICE u32 cells() const { return 1u << (x_log2 + y_log2); }
  WARPHEAP_HOST_DEVICE u32 super_cells() const { return cells() >> (super_cell_x_log2 + super_cell_y_log2); }
  WARPHEAP_HOST_DEVICE u32 node(u32 x, u32 y) const { return (y & (cells_y() - 1)) << x_log2 | (x & (cells_x() - 1)); }
  WARPHEAP_HOST_DEVICE u32 cell_x(u32 x) const { return x >> (32 - x_log2); }
  WARPHEAP_HOST_DEVICE u32 cell_y(u32 y) const { return y >> (32 - y_log2); }
  WARPHEAP_HOST_DEVICE u32 super_cell(u32 x, u32 y) const {
    return cell_y(y) >> super_cell_y_log2 << (x_log2 - super_cell_x_log2) | cell_x(x) >> super_cell_x_log2;
  }
};

/// A frame of `slots` slots; a view of one block of the heap.
struct frame {
  u8* memory = nullptr;
  u32 slots = 0;

  static constexpr u32 header_bytes = 16;
  static constexpr u32 slot_bytes = sizeof(particle);

  /// Slots of a block of `bytes` bytes: a multiple of a warp's lanes.
  WARPHEAP_HOST_DEVICE static constexpr u32 slots_in(u64 bytes) {
    return bytes < header_bytes ? 0 : static_cast<u32>((bytes - header_bytes) / slot_bytes) / warp_lanes * warp_lanes;
  }

  WARPHEAP_DEVICE explicit operator bool() const { return memory != nullptr; }
  WARPHEAP_DEVICE u64& link() const { return *reinterpret_cast<u64*>(memory); }
  WARPHEAP_DEVICE frame next() const { return {reinterpret_cast<u8*>(link()), slots}; }

  WARPHEAP_DEVICE u32& x(u32 slot) const { return word(0)[slot]; }
  WARPHEAP_DEVICE u32& y(u32 slot) const { return word(1)[slot]; }
  WARPHEAP_DEVICE float& vx(u32 slot) const { return reinterpret_cast<float*>(word(2))[slot]; }
  WARPHEAP_DEVICE float& vy(u32 slot) const { return reinterpret_cast<float*>(word(3))[slot]; }
  WARPHEAP_DEVICE u32& id(u32 slot) const { return word(4)[slot]; }

  WARPHEAP_DEVICE particle get(u32 slot) const { return {x(slot), y(slot), vx(slot), vy(slot), id(slot)}; }
  WARPHEAP_DEVICE void set(u32 slot, particle const& one) const {
    x(slot) = one.x;
    y(slot) = one.y;
    vx(slot) = one.vx;
    vy(slot) = one.vy;
    id(slot) = one.id;
  }

 private:
  WARPHEAP_DEVICE u32* word(u32 array) const { return reinterpret_cast<u32*>(memory + header_bytes) + array * slots; }
};

/// The particles of one species in one super cell, and those that arrive there during a step.
struct particle_list {
  u64 head = 0;      ///< first frame's address
  u64 arrivals = 0;  ///< first frame of the arrivals
  u32 count = 0;     ///< slots in use, including those that particles left in this step
  u32 left = 0;      ///< particles that left in this step
  u32 arrived = 0;   ///< slots that arrivals have claimed
  u32 unused = 0;

  WARPHEAP_DEVICE frame first(u32 slots) const { return {reinterpret_cast<u8*>(head), slots}; }
};

/// An argument of all kernels: the lists of all species, [species][super cell].
struct list_table {
  particle_list* lists;
  plane space;
  u32 species;
  u32 slots;  ///< of a frame
  u32 frame_bytes;

  WARPHEAP_HOST_DEVICE u32 size() const { return species * space.super_cells(); }
  WARPHEAP_DEVICE particle_list* of(u32 which) const { return lists + which * space.super_cells(); }
};

/// The shape of a grid in which each list has a warp, and the calling warp's number there.
inline constexpr u32 list_threads = 128;
/// Thread blocks that fit on a multiprocessor, whatever registers the allocator needs. Most of a
/// kernel's work is not the allocator's, and must have as many warps with one allocator as with
/// another.
inline constexpr u32 list_blocks = 8;
inline launch_shape warp_each(u32 lists) { return shape_for(u64{lists} * warp_lanes, list_threads); }
WARPHEAP_DEVICE inline u32 warp_of_grid() { return static_cast<u32>(global_thread_index() / warp_lanes); }

/// Calls visit(frame, slot) in one lane for each particle of a packed list.
template <class Visit>
WARPHEAP_DEVICE void for_each_particle(particle_list const& list, u32 slots, Visit visit) {
  frame here = list.first(slots);
  for (u32 base = 0; base < list.count; base += slots, here = here.next()) {
    u32 const used = list.count - base < slots ? list.count - base : slots;
    for (u32 slot = simt::lane_id(); slot < used; slot += warp_lanes) visit(here, slot);
  }
}

WARPHEAP_DEVICE inline void add(u64& total, u64 part) {
  // relaxed: read after the kernel
  if (part) atomic_ref<u64>{total}.fetch_add(part, order::relaxed);
}

}}  // namespace warpheap::tool::pic::WARPHEAP_BACKEND
