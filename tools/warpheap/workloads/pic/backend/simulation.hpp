// SPDX-License-Identifier: Apache-2.0
// One run of `warpheap pic` with one allocator: particles are made, steps timed, everything is
// compared with the start, and all frames are freed. The order of a step: push (by the field), move
// (leave and settle: the part that allocates), solve (the new field).
//
// A ring_buffer belongs to one species, as in PIConGPU, and gets an equal part of the pool; other
// allocators serve all species from one heap.
#pragma once

#include <cmath>

#include "field.hpp"
#include "measure/measure.hpp"
#include "populate.hpp"
#include "warpheap/policy/creation/ring_buffer.hpp"
#include "workloads/pic/settings.hpp"

namespace warpheap::tool::pic { inline namespace WARPHEAP_BACKEND {

/// Whether species have heaps of their own.
inline bool splits_the_pool(std::string const& allocator) { return allocator == creation::ring_buffer<>::name; }

/// How much conserved quantities may change in a run: energy relative to itself, momentum relative
/// to that of the drift.
inline constexpr double energy_tolerance = 0.02, momentum_tolerance = 1e-3;

template <class Allocator, class Pusher = leap_frog, class Heap = basic_heap<Allocator>>
class simulation {
 public:
  simulation(std::string name, pic_settings const& settings)
      : settings_{settings},
        space_{log2_floor(settings.cells_x), log2_floor(settings.cells_y)},
        solver_{space_, settings.species * settings.particles_per_cell},
        lists_(size_t{settings.species} * space_.super_cells()),
        tallies_(tally_slot::count),
        sums_(1),
        watch_{4} {
    u32 const heaps = splits_the_pool(name) ? settings.species : 1;
    for (u32 i = 0; i < heaps; ++i) heaps_.emplace_back(settings.pool_bytes / heaps);
    step_ = bench::result{.scenario = "pic", .allocator = std::move(name), .operation = "step"};
    step_.parameters = {{"cells_x", settings.cells_x},      {"cells_y", settings.cells_y},
                        {"species", settings.species},      {"particles_per_cell", settings.particles_per_cell},
                        {"steps", settings.steps},          {"frame_bytes", settings.frame_bytes},
                        {"pool_bytes", settings.pool_bytes}};
    move_ = step_;
    move_.operation = "move";
  }

  pic_outcome run() {
    for (u32 repeat = 0; repeat < settings_.repeat && step_.checked(); ++repeat) run_once(repeat);
    move_.fault = step_.fault;
    if constexpr (requires(Heap const heap) { heap.trace(); }) settings_.take_trace(heaps_.front().trace());
    return {{step_, move_}, state_};
  }

 private:
  u64 particles() const { return u64{space_.cells()} * settings_.species * settings_.particles_per_cell; }

  list_table table() const {
    return {lists_.data(), space_, settings_.species, frame::slots_in(settings_.frame_bytes),
            static_cast<u32>(settings_.frame_bytes)};
  }

  typename Heap::ref_type heap_of(u32 species) const { return heaps_[heaps_.size() > 1 ? species : 0].ref(); }

  void run_once(u32 repeat) {
    tallies_ = device_buffer<tally_slot>(tally_slot::count);
    bool const both_sides = settings_.species == 1;
    for_each_species(populate{settings_.seed, settings_.particles_per_cell, both_sides});
    if (u64 const missing = tally().stranded)
      note(std::to_string(missing) + " of " + std::to_string(particles()) + " particles found no memory in a pool of " +
           std::to_string(settings_.pool_bytes) + " bytes");
    else run_steps(repeat);
    compare_with_heaps();
    move_.failures = step_.failures = tally().failures;
    for_each_species_super_cell(drop_lists{});
    auto const now = tally();
    if (now.mallocs != now.frees)
      note(std::to_string(now.mallocs) + " frames came and " + std::to_string(now.frees) + " went");
    for (auto const& heap : heaps_) note(bench::fault_of_emptied(heap));
  }

  void run_steps(u32 repeat) {
    solver_.solve(table());
    push(-time_step / 2, 0);  // velocities go half a step behind positions
    auto const before = look();
    u64 const populated = tally().mallocs;
    for (u32 step = 0; step < settings_.steps; ++step) {
      settings_.report("pic, " + step_.allocator, u64{repeat} * settings_.steps + step,
                       u64{settings_.repeat} * settings_.steps);
      make_step();
    }
    auto const after = look();
    compare(before, after);
    auto const now = tally();
    double const steps = settings_.steps;
    double const mallocs = static_cast<double>(now.mallocs - populated) / steps;
    double const frees = static_cast<double>(now.frees) / steps;
    step_.operations = static_cast<double>(particles());
    move_.operations = mallocs + frees;
    step_.figures = {{"energy_error", after.energy / before.energy - 1},
                     {"momentum_error", momentum_error(before, after)},
                     {"field_growth", after.field_energy / before.field_energy}};
    move_.figures = {{"mallocs_a_step", mallocs},
                     {"frees_a_step", frees},
                     {"moved_share", static_cast<double>(now.moved) / steps / static_cast<double>(particles())}};
  }

  void make_step() {
    watch_.mark();
    push(time_step, time_step);
    watch_.mark();
    for_each_species(leave_super_cells{});
    for_each_species(settle_super_cells{});
    watch_.mark();
    solver_.solve(table());
    watch_.mark();
    auto const laps = watch_.laps();
    step_.times_us.push_back(laps[0] + laps[1] + laps[2]);
    move_.times_us.push_back(laps[1]);
  }

  /// Totals of all kernels since the run began.
  move_totals tally() const {
    move_totals all;
    for (auto const& [part, padding] : tallies_.to_host()) {
      all.mallocs += part.mallocs;
      all.frees += part.frees;
      all.failures += part.failures;
      all.moved += part.moved;
      all.stranded += part.stranded;
    }
    return all;
  }

  void push(float kick, float glide) {
    launch(warp_each(table().size()), push_particles<Pusher>{kick, glide}, table(), solver_.field());
  }

  /// Launches a kernel that allocates, with a warp for each super cell.
  template <class Kernel>
  void for_each_species(Kernel kernel) {
    for (u32 species = 0; species < settings_.species; ++species)
      launch(warp_each(space_.super_cells()), kernel, heap_of(species), table(), species, tallies_.data());
  }

  /// Launches a kernel that allocates, with a thread for each super cell.
  template <class Kernel>
  void for_each_species_super_cell(Kernel kernel) {
    for (u32 species = 0; species < settings_.species; ++species)
      launch(shape_for(space_.super_cells(), list_threads), kernel, heap_of(species), table(), species,
             tallies_.data());
  }

  struct observation {
    particle_sums sums;
    double energy, field_energy;
  };

  observation look() {
    sums_ = device_buffer<particle_sums>(1);
    launch(warp_each(table().size()), sum_particles<Pusher>{time_step / 2}, table(), solver_.field(), sums_.data());
    synchronize();
    observation seen{sums_[0], 0, solver_.energy()};
    double const per_cell = settings_.species * settings_.particles_per_cell;
    seen.energy = seen.field_energy + 0.5 * static_cast<double>(seen.sums.twice_energy) / (1 << 24) / per_cell;
    return seen;
  }

  double momentum_error(observation const& before, observation const& after) const {
    auto const change = [](u64 from, u64 to) { return static_cast<double>(static_cast<i64>(to - from)) / (1 << 24); };
    double const x = change(before.sums.momentum_x, after.sums.momentum_x);
    double const y = change(before.sums.momentum_y, after.sums.momentum_y);
    return std::sqrt(x * x + y * y) / (drift * static_cast<double>(particles()));
  }

  void compare(observation const& before, observation const& after) {
    u64 ids = 0;
    for (u64 id = 0; id < particles(); ++id) ids += id_part(id);
    for (auto const* seen : {&before, &after}) {
      if (seen->sums.particles != particles())
        note(std::to_string(particles()) + " particles were made, and there are " +
             std::to_string(seen->sums.particles));
      if (seen->sums.ids != ids) note("the particles are not those that were made: the checksum of their ids differs");
    }
    if (u64 const stranded = tally().stranded)
      note(std::to_string(stranded) + " times a particle found no memory in its new super cell, in a pool of " +
           std::to_string(settings_.pool_bytes) + " bytes");
    else if (after.sums.misplaced)
      note(std::to_string(after.sums.misplaced) + " particles are not in the list of their super cell");
    if (after.sums.wild) note(std::to_string(after.sums.wild) + " particles are faster than any should be");
    // Not >=: NaN is an error.
    if (double const error = std::abs(after.energy / before.energy - 1); !(error < energy_tolerance))
      note("energy changed by a part of " + std::to_string(error) + ", more than " + std::to_string(energy_tolerance));
    if (double const error = momentum_error(before, after); !(error < momentum_tolerance))
      note("momentum changed by a part of " + std::to_string(error) + ", more than " +
           std::to_string(momentum_tolerance));
    if (state_ != 0 && state_ != after.sums.state) note("two runs with the same seed ended differently");
    state_ = after.sums.state;
  }

  /// Compares the heaps' own counts, where they have them, with ours.
  void compare_with_heaps() {
    if constexpr (requires { heaps_.front().statistics(); }) {
      auto const now = tally();
      u64 live = 0;
      for (auto const& heap : heaps_) live += heap.statistics().live_blocks;
      if (live != now.mallocs - now.frees)
        note("the heap has " + std::to_string(live) + " live blocks, and the lists have " +
             std::to_string(now.mallocs - now.frees) + " frames");
    }
  }

  /// Keeps the first fault.
  void note(std::string const& fault) {
    if (step_.fault.empty()) step_.fault = fault;
  }

  pic_settings const& settings_;
  plane space_;
  std::vector<Heap> heaps_;
  field_solver solver_;
  device_buffer<particle_list> lists_;
  device_buffer<tally_slot> tallies_;
  device_buffer<particle_sums> sums_;
  bench::lap_watch watch_;
  bench::result step_, move_;
  u64 state_ = 0;
};

}}  // namespace warpheap::tool::pic::WARPHEAP_BACKEND
