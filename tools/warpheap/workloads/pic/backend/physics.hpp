// SPDX-License-Identifier: Apache-2.0
// What particles and field do to each other, without any allocation: the code is the same whatever
// allocator the frames come from.
//
// Units: a cell's side is 1, the plasma frequency of all species together is 1, and charge over
// mass is -1. A particle's weights on the four nodes around it are integer parts of 2^20 that add
// up to 2^20. So charge is conserved exactly, and sums of weights do not depend on their order. The
// weights that give a node its charge also give the particle the node's force, so no particle acts
// on itself, and momentum is conserved to rounding. Sums of energies are fixed point too.
// Source: Hockney and Eastwood, Computer Simulation Using Particles, 1988: cloud in cell, and
// leap-frog.
#pragma once

#include "particles.hpp"
#include "warpheap/util/random.hpp"

namespace warpheap::tool::pic { inline namespace WARPHEAP_BACKEND {

inline constexpr u32 weight_log2 = 20;
inline constexpr float time_step = 0.2f;
inline constexpr float drift =
    1.5f;  ///< cells in a unit of time, along x; species in turn to the right and to the left
inline constexpr float spread = 0.3f;  ///< of velocities around the drift, standard deviation
/// cells in a step: beyond this a run is lost, and the limit keeps numbers from becoming NaN
inline constexpr float fastest = 64.0f;

struct vector {
  float x, y;
};

/// Where a particle is among the nodes around it.
struct cloud {
  u32 x, y;           ///< the node below
  u32 weights[2][2];  ///< [y][x], together 2^weight_log2

  WARPHEAP_DEVICE cloud(plane const& space, u32 at_x, u32 at_y) : x{space.cell_x(at_x)}, y{space.cell_y(at_y)} {
    u32 const right = at_x << space.x_log2 >> (32 - weight_log2), up = at_y << space.y_log2 >> (32 - weight_log2);
    u32 const both = static_cast<u32>(u64{right} * up >> weight_log2);
    weights[1][1] = both;
    weights[0][1] = right - both;
    weights[1][0] = up - both;
    weights[0][0] = (1u << weight_log2) - right - up + both;
  }
};

WARPHEAP_DEVICE inline vector field_at(plane const& space, vector const* field, u32 x, u32 y) {
  cloud const here{space, x, y};
  vector sum{0, 0};
  for (u32 j = 0; j < 2; ++j)
    for (u32 i = 0; i < 2; ++i) {
      vector const node = field[space.node(here.x + i, here.y + j)];
      float const weight = static_cast<float>(here.weights[j][i]) * (1.0f / (1u << weight_log2));
      sum.x += weight * node.x;
      sum.y += weight * node.y;
    }
  return sum;
}

/// Kernel: adds every particle's weights to the nodes around it.
struct deposit_charge {
  WARPHEAP_DEVICE void operator()(list_table table, u64* charge) const {
    if (warp_of_grid() >= table.size()) return;
    for_each_particle(table.lists[warp_of_grid()], table.slots, [&](frame here, u32 slot) {
      cloud const spread_out{table.space, here.x(slot), here.y(slot)};
      for (u32 j = 0; j < 2; ++j)
        for (u32 i = 0; i < 2; ++i)
          add(charge[table.space.node(spread_out.x + i, spread_out.y + j)], spread_out.weights[j][i]);
    });
  }
};

/// How a particle moves on: velocity by the force for a time, then position by the velocity.
struct leap_frog {
  WARPHEAP_DEVICE static vector accelerate(vector velocity, vector field, float time) {
    return {velocity.x - field.x * time, velocity.y - field.y * time};
  }
};

/// `value` within [-most, most]; NaN, which fails both comparisons, as -most.
WARPHEAP_DEVICE inline float limited(float value, float most) {
  if (value > most) return most;
  return value > -most ? value : -most;
}

/// `cells` as a part of a side of 2^log2 cells.
WARPHEAP_DEVICE inline u32 as_position(float cells, u32 log2) {
  float const parts = limited(cells, fastest) * static_cast<float>(1u << (32 - log2));
  return static_cast<u32>(static_cast<i64>(parts + (parts < 0 ? -0.5f : 0.5f)));
}

/// Kernel: `kick` of time of acceleration, then `glide` of time of motion, for every particle.
template <class Pusher>
struct push_particles {
  float kick, glide;

  WARPHEAP_DEVICE void operator()(list_table table, vector const* field) const {
    if (warp_of_grid() >= table.size()) return;
    for_each_particle(table.lists[warp_of_grid()], table.slots, [&](frame here, u32 slot) {
      u32 const x = here.x(slot), y = here.y(slot);
      vector const old{here.vx(slot), here.vy(slot)};
      vector const velocity = Pusher::accelerate(old, field_at(table.space, field, x, y), kick);
      here.vx(slot) = velocity.x;
      here.vy(slot) = velocity.y;
      here.x(slot) = x + as_position(velocity.x * glide, table.space.x_log2);
      here.y(slot) = y + as_position(velocity.y * glide, table.space.y_log2);
    });
  }
};

/// Sums over all particles that do not depend on their order. Numbers modulo 2^64.
struct particle_sums {
  u64 particles = 0;
  u64 ids = 0;        ///< of mixed ids: two different sets of ids are unlikely to have the same
  u64 state = 0;      ///< of mixed positions, velocities and ids
  u64 wild = 0;       ///< particles too fast, or with a velocity that is NaN
  u64 misplaced = 0;  ///< particles in the list of another super cell
  u64 twice_energy = 0, momentum_x = 0, momentum_y = 0;  ///< of masses 1, in parts of 2^-24
};

WARPHEAP_HOST_DEVICE inline u64 id_part(u64 id) { return mix(id + 1); }

/// Kernel: the sums, with velocities at the time of the positions.
template <class Pusher>
struct sum_particles {
  float kick;  ///< from the velocities' time to the positions'

  WARPHEAP_DEVICE void operator()(list_table table, vector const* field, particle_sums* total) const {
    u32 const mine = warp_of_grid();
    if (mine >= table.size()) return;
    particle_sums sums;
    for_each_particle(table.lists[mine], table.slots, [&](frame here, u32 slot) {
      particle const one = here.get(slot);
      vector const now = Pusher::accelerate({one.vx, one.vy}, field_at(table.space, field, one.x, one.y), kick);
      ++sums.particles;
      sums.ids += id_part(one.id);
      sums.state += mix(mix(u64{one.x} << 32 | one.y) ^ mix(u64{bits(one.vx)} << 32 | bits(one.vy)) ^ id_part(one.id));
      sums.misplaced += table.space.super_cell(one.x, one.y) != mine % table.space.super_cells();
      sums.wild += !(now.x * now.x + now.y * now.y < fastest * fastest);
      sums.twice_energy += fixed_point(now.x * now.x + now.y * now.y);
      sums.momentum_x += fixed_point(now.x);
      sums.momentum_y += fixed_point(now.y);
    });
    add(total->particles, sums.particles);
    add(total->ids, sums.ids);
    add(total->state, sums.state);
    add(total->wild, sums.wild);
    add(total->misplaced, sums.misplaced);
    add(total->twice_energy, sums.twice_energy);
    add(total->momentum_x, sums.momentum_x);
    add(total->momentum_y, sums.momentum_y);
  }

 private:
  WARPHEAP_DEVICE static u64 fixed_point(float value) {
    return static_cast<u64>(static_cast<i64>(static_cast<double>(limited(value, 1 << 20)) * (1 << 24)));
  }
  WARPHEAP_DEVICE static u32 bits(float value) {
    u32 word;
    static_assert(sizeof word == sizeof value);
    __builtin_memcpy(&word, &value, sizeof word);
    return word;
  }
};

}}  // namespace warpheap::tool::pic::WARPHEAP_BACKEND
