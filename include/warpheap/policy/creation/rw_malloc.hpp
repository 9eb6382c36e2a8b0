// SPDX-License-Identifier: Apache-2.0
// Blocks of any size made of small units, found by looking at random places. A block is a run of
// consecutive units, and a bit a unit says whether it is taken. The lanes of a warp look at a
// window of the bitmap together, one or a few words each, and share out the runs of free units that
// they find, also those that cross words. Lanes with small requests that differ ask as one, and
// each frees its part alone.
//
// There are no classes and no slabs, so only the rounding to units is lost, and blocks of one size
// lie side by side. The price is a search, longer the fuller the heap is. Blocks larger than a
// window, or aligned to more than a unit, always need one. It passes over words known to have no
// such run, and makes a refusal certain. Cost: four bits a unit, and 8 bytes for every 4,096 units.
//
// Source: Pham et al. 2022, section 4.3. Differs: docs/design/rw_malloc.md.
#pragma once

#include "../../sync/warp_aggregate.hpp"
#include "../memory_range.hpp"
#include "report.hpp"
#include "rw_malloc/faults.hpp"
#include "rw_malloc/search.hpp"
#include "rw_malloc/slots.hpp"
#include "rw_malloc/snapshot.hpp"
#include "rw_malloc/walk.hpp"
#include "shared/policy_base.hpp"
#include "shared/pool_units.hpp"
#include "shared/step_count.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace creation {

/// A handle on a heap of units: 16 bytes, trivially copyable; all copies serve the same heap.
/// `Faults` has the operations of a lane; tests replace it.
template <rw_malloc_config Config = rw_malloc_config{}, class Faults = rw_malloc_parts::no_faults>
class rw_malloc : public policy_base<rw_malloc<Config, Faults>, rw_malloc_parts::table<Config>> {
  static_assert(
      is_valid(Config),
      "rw_malloc: unit_bytes is a power of two from 16 to 4096, aggregated_units at most 32, words_per_lane 1, 2 or "
      "4, group_words a power of two up to 128");
  static constexpr size_t unit_bytes = Config.unit_bytes;
  using table_type = rw_malloc_parts::table<Config>;
  using base_type = policy_base<rw_malloc, table_type>;
  using base_type::table_, base_type::refuse, base_type::key_of;
  using walk_type = rw_malloc_parts::walk<Config, Faults>;
  using search_type = rw_malloc_parts::search<Config, Faults>;
  using unit_run = rw_malloc_parts::unit_run;
  using unit_word = rw_malloc_parts::unit_word;
  using run_slots = rw_malloc_parts::run_slots;
  using run_wish = rw_malloc_parts::run_wish;

 public:
  static constexpr char const* name = "rw_malloc";
  static constexpr rw_malloc_config config = Config;
  static constexpr allocator_traits traits{.alignment = unit_bytes,
                                           .self_aligned_up_to = unit_bytes,
                                           .multiples_aligned_up_to = unit_bytes,
                                           .detects_misuse = true,
                                           .exact_out_of_memory = true,
                                           .one_pass_refusals = true,
                                           .whole_pool = true};

  /// A block of at least `bytes` bytes; nullptr for 0, and when no run of enough units was free
  /// during the whole call. Any lanes, converged or not.
  WARPHEAP_DEVICE void* create(size_t bytes) const {
    if (bytes == 0) return nullptr;
    if (bytes > table_.pool_bytes()) return refuse();
    return serve(simt::match_any(simt::active_mask(), key_of()), table_.wish(units_for(bytes), 1));
  }

  /// As create(), at a multiple of `alignment`, a power of two.
  WARPHEAP_DEVICE void* create_aligned(size_t alignment, size_t bytes) const {
    if (bytes == 0) return nullptr;
    if (bytes > table_.pool_bytes()) return refuse();
    return serve(simt::match_any(simt::active_mask(), key_of()), table_.wish(units_for(bytes), alignment));
  }

  /// A block for each lane of `mask`, each with its own size. All of them call, with the same mask.
  WARPHEAP_DEVICE void* create_warp(lane_mask mask, size_t bytes) const {
    bool const fits = bytes != 0 && bytes <= table_.pool_bytes();
    lane_mask const together = simt::ballot(mask, fits);
    return fits ? serve(simt::match_any(together, key_of()), table_.wish(units_for(bytes), 1)) : create(bytes);
  }

  /// Gives a block back. Any lane alone. nullptr does nothing; any other pointer to no live block
  /// is counted and ignored.
  WARPHEAP_DEVICE void destroy(void* memory) const {
    if (!memory) return;
    u64 const unit = table_.number_of(memory);
    if (unit == table_type::none) return table_.add_count(count::foreign_frees);
    unit_run const run = table_.template disown<Faults>(unit);
    if (run.units == 0) return table_.add_count(count::double_frees);
    release_fence();  // for all give_back()
    u64 seen = 0;
    WARPHEAP_NO_UNROLL
    for (u32 i = 0; i < run.words(); i += words_at_once) {
      u64 held[words_at_once];  // all are issued before the first is used
      for (u32 k = 0; k < words_at_once; ++k) held[k] = i + k < run.words() ? give_back(run, i + k) : 0;
      for (u32 k = 0; k < words_at_once; ++k) seen |= held[k];
    }
    if (unit_word::is_watched(walk_word{seen})) disturb(table_, run);
  }

  /// Bytes of the live block that starts at `memory`; 0 if none does.
  WARPHEAP_DEVICE size_t usable_size(void const* memory) const {
    return table_.template block_at<Faults>(memory).units * unit_bytes;
  }

  /// Whether `memory` is a live block.
  WARPHEAP_DEVICE bool owns(void const* memory) const { return table_.template block_at<Faults>(memory).units != 0; }

  /// For slot_survey.hpp, which counts in parts.
  WARPHEAP_HOST_DEVICE u64 slot_places() const { return table_.words(); }
  WARPHEAP_DEVICE slot_part count_slots(size_t bytes, slot_share share) const {
    if (bytes == 0 || bytes > table_.pool_bytes()) return {};
    u32 const first = static_cast<u32>(share.first(slot_places())), end = static_cast<u32>(share.end(slot_places()));
    free_runs runs{u64{32} * first, run_slots{units_for(bytes)}};
    WARPHEAP_NO_UNROLL
    for (u32 i = first; i < end; ++i) rw_malloc_parts::add_word(runs, table_.look_at(i).free());
    return runs.part();
  }
  WARPHEAP_HOST_DEVICE u64 slots_of_run(size_t bytes, u64 first, u64 length) const {
    return run_slots{units_for(bytes)}(first, length);
  }

  /// Units of a pool. Throws std::invalid_argument for less than a unit, and for more units than
  /// allowed.
  WARPHEAP_HOST static u64 plan(size_t pool_bytes) {
    return count_units("rw_malloc", "units", pool_bytes, unit_bytes, table_type::max_units);
  }
  /// The pool, of which the policy reads and writes no byte.
  WARPHEAP_HOST memory_range untouched_pool() const { return {table_.pool(), table_.pool_bytes()}; }

#if !defined(__CUDACC_RTC__)
  /// A copy of the heap's state, which answers the host's questions: report.hpp.
  rw_malloc_parts::snapshot<Config> snapshot() const { return rw_malloc_parts::snapshot<Config>{table_}; }

  /// Steps of all calls since the last forget_steps(), of a quiet heap: windows of walks, and
  /// looks of searches.
  walk_steps_taken steps_taken() const requires(Config.counts_steps) { return read_steps(table_.steps()); }
  void forget_steps(stream_view on = {}) const requires(Config.counts_steps) { reset_steps(table_.steps(), on); }
#endif

 private:
  WARPHEAP_HOST_DEVICE static u64 units_for(size_t bytes) { return (bytes - 1) / unit_bytes + 1; }

  /// Frees the units of a block in its i-th word; returns what the word held.
  WARPHEAP_DEVICE u64 give_back(unit_run run, u32 i) const {
    u32 const part = run.part(i);
    u64 const ours = part == full_word ? ~unit_word::others_bits : part;  // its extent too (rw.U3)
    return Faults::give_back(table_.word(run.first_word() + i), ours).word;
  }
  static constexpr u32 words_at_once = 4;

  /// Clears the notes of a run's groups. Rare: in a heap that was never searched no word is
  /// watched.
  WARPHEAP_COLD static void disturb(table_type table, unit_run run) {
    u64 const last = (run.first + run.units - 1) / table_type::group_units;
    release_fence();  // for all disturb()
    WARPHEAP_NO_UNROLL
    for (u64 group = run.first / table_type::group_units; group <= last; ++group)
      Faults::disturb(table.group(group));  // rw.G1
  }

  /// The lane's block; nullptr if there is none. All lanes of `together` call, each with its wish.
  WARPHEAP_DEVICE void* serve(lane_mask together, run_wish wish) const {
    walk_type walk{table_, together};
    u64 unit = walk_for(walk, together, wish);
    u32 steps = walk.steps();
    bool const needs = unit == walk_type::none;
    // Searches may wait for marks (take.hpp), so all lanes set theirs before any of them searches.
    if (!needs) unit = table_.template own<Faults>(unit, wish.units);
    if (simt::ballot(together, needs) != 0) {
      auto const found = search_type::run(table_, together, wish, unit, walk.somewhere());
      unit = found.unit;
      steps += found.steps;
    }
    if constexpr (Config.counts_steps) count_steps(table_.steps(), together, steps);
    if (unit == search_type::none) return refuse();
    return table_.address(unit);
  }

  /// What a walk finds for the lanes. Those with small requests that differ first ask as one.
  WARPHEAP_DEVICE static u64 walk_for(walk_type& walk, lane_mask together, run_wish wish) {
    bool const walks = wish.align == 1 && wish.units <= walk_type::lane_units * warp_lanes;
    u32 const units = walks ? static_cast<u32>(wish.units) : 0;
    lane_mask const parts = simt::ballot(together, units != 0 && units <= Config.aggregated_units);
    u64 unit = walk_type::none;
    u32 const first = simt::shuffle(together, units, lowest_bit(parts != 0 ? parts : together));
    if (simt::ballot(together, units != first && (parts >> simt::lane_id() & 1) != 0) != 0)
      unit = walk_as_one(walk, together, parts, units);
    bool const needs = units != 0 && unit == walk_type::none;
    if (simt::ballot(together, needs) != 0)
      if (u64 const found = walk.run({needs ? units : 0, units != 0 ? units : 1}, Config.walk_windows); needs)
        unit = found;
    return unit;
  }

  /// One block for the lanes of `parts`, each of which gets its part, beside those of the others.
  WARPHEAP_DEVICE static u64 walk_as_one(walk_type& walk, lane_mask together, lane_mask parts, u32 units) {
    bool const is_part = (parts >> simt::lane_id() & 1) != 0;
    u32 const leader = lowest_bit(parts);
    u32 before = 0, all = 0;  // units of the parts before ours, and of all
    WARPHEAP_NO_UNROLL
    for (lane_mask rest = parts; rest != 0; rest &= rest - 1) {
      u32 const theirs = simt::shuffle(together, units, lowest_bit(rest));
      if (lowest_bit(rest) < simt::lane_id()) before += theirs;
      all += theirs;
    }
    u32 wanted = units;
    if (is_part) wanted = simt::lane_id() == leader ? all : 0;
    u64 const unit = walk.run({wanted, is_part || units == 0 ? 1 : units, is_part}, windows_as_one);
    u64 const first = simt::shuffle(together, unit, leader);
    if (!is_part) return unit;
    return first != walk_type::none ? Faults::part_of(first, before) : first;
  }
  static constexpr u32 windows_as_one = 2;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::creation
