// SPDX-License-Identifier: Apache-2.0
// How a warp takes a run that it saw. Its lanes lock the words of the run in ascending order, some
// each, and only then believe that it is free. So of two warps that want overlapping runs, one gets
// all of its own.
//
//   rw.S1  lanes that wait for a locked word hold only words below it. So lanes wait in no circle.
#pragma once

#include "../../../platform/backoff.hpp"
#include "table.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace rw_malloc_parts {

/// The result of an attempt to take a run.
struct run_taken {
  enum : u32 {
    done,  ///< the run is ours
    lost,  ///< not all of it was free
    /// it was to begin where a block ends, but no block ends there, or not yet: the run may be
    /// longer and have a better place
    moved,
  } how;
  /// of a lost run, the first and last unit seen taken
  u64 first = run_wish::nowhere, last = run_wish::nowhere;
};

/// Takes runs for the lanes of `active`, which call together with the same heap.
template <creation::rw_malloc_config Config, class Faults>
class take {
  using table_type = table<Config>;

 public:
  WARPHEAP_DEVICE take(table_type const& table, lane_mask active)
      : table_{table}, active_{active}, rank_{popcount(active & simt::lanes_below())}, lanes_{popcount(active)} {}

  /// Takes the run if all of it is free. If it is to be `behind_block`, the unit before it must be
  /// the last one of a block.
  WARPHEAP_DEVICE run_taken operator()(unit_run run, bool behind_block) const {
    u32 const words = run.words();
    u32 locked = 0;  // words of the run, from the first on
    run_taken found{run_taken::done};
    backoff nap;
    WARPHEAP_NO_UNROLL
    while (found.how == run_taken::done && locked < words) {
      if (words <= lanes_) found = lock<1>(run, locked, nap);
      else found = lock<lane_words>(run, locked, nap);
    }
    bool const free = found.how == run_taken::done;
    // From now on every lane sees what any lane saw of the words.
    simt::sync_warp(active_);
    bool const is_moved =
        Faults::looks_for_ends && free && behind_block && run.first != 0 && !table_.has_end(run.first - 1);
    bool const ours = free && simt::ballot(active_, is_moved) == 0;
    WARPHEAP_NO_UNROLL
    for (u32 i = rank_; i < locked; i += lanes_) {
      u64 const bits = run.part(i) | u64{run.extent(i)} << unit_word::extent_shift;
      Faults::publish(table_.word(run.first_word() + i), ours ? bits : 0);
    }
    if (ours) note_taken(run);
    simt::sync_warp(active_);  // as above
    return ours || !free ? found : run_taken{run_taken::moved};
  }

 private:
  static constexpr u64 none = run_wish::nowhere;
  static constexpr u32 lane_words = 8;  ///< words of a long run that a lane locks at once

  /// Locks the next words of the run, up to `Each` a lane and up to the first that another lane
  /// holds, and adds their number to `locked`. `done` if all units of the run in these words are
  /// free, else `lost`.
  template <u32 Each>
  WARPHEAP_DEVICE run_taken lock(unit_run run, u32& locked, backoff& nap) const {
    u32 const base = locked + rank_ * Each, words = run.words();
    u32 ours = words - base < Each ? words - base : Each;
    if (base >= words) ours = 0;
    // We lock only words below the first one held: contending threads that lock words that they
    // cannot keep would never finish.
    u32 held = 0, got = 0;  // bit i: our i-th word
    for (u32 i = 0; i < Each; ++i)
      if (i < ours && glance<Each>(run.first_word() + base + i).locked()) held |= 1u << i;
    u32 const first_held = lowest_or(held, ours);
    lane_mask const holding = simt::ballot(active_, first_held < ours);
    bool const above = (holding & simt::lanes_below()) != 0;
    u32 const tries = above ? 0 : first_held;
    u64 first_taken = none, last_taken = none;
    for (u32 i = 0; i < Each; ++i) {
      if (i >= tries) continue;
      walk_word const seen = Faults::try_lock(table_.word(run.first_word() + base + i));
      if (!seen.locked()) got |= 1u << i;
      // The holder of a word gives nothing back, so units seen taken in it count too.
      u32 const lost = run.part(base + i) & ~seen.free();
      if (lost == 0) continue;
      u64 const unit = u64{32} * (run.first_word() + base + i);
      last_taken = unit + highest_bit(lost);
      if (first_taken == none) first_taken = unit + lowest_bit(lost);
    }
    u32 const first_failed = lowest_or(~got & low_mask32(ours), ours);
    lane_mask const failing = simt::ballot(active_, first_failed < ours);
    u32 const kept = (failing & simt::lanes_below()) != 0 ? 0 : first_failed;
    WARPHEAP_NO_UNROLL
    for (u32 rest = got & ~low_mask32(kept); rest != 0; rest &= rest - 1)
      Faults::publish(table_.word(run.first_word() + base + lowest_bit(rest)), 0);  // rw.S1
    u32 const last = failing != 0 ? lowest_bit(failing) : highest_bit(active_);
    u32 const end = simt::shuffle(active_, base + kept, last);
    locked = end < words ? end : words;
    lane_mask const losing = simt::ballot(active_, last_taken != none);
    if (losing != 0)
      return {run_taken::lost, simt::shuffle(active_, first_taken, lowest_bit(losing)),
              simt::shuffle(active_, last_taken, highest_bit(losing))};
    if (failing != 0) nap.for_long();
    return {run_taken::done};
  }

  WARPHEAP_DEVICE static u32 lowest_or(u32 bits, u32 otherwise) { return bits != 0 ? lowest_bit(bits) : otherwise; }

  /// Reads a word before we lock it. The words of a long run are watched from now on, so that their
  /// groups can be noted as taken.
  template <u32 Each>
  WARPHEAP_DEVICE walk_word glance(u32 index) const {
    return Each == 1 ? table_.look_at(index) : Faults::watch(table_.word(index));
  }

  /// Notes that nothing is free in the groups that a long run covers: no other thread can free
  /// units there before we return.
  WARPHEAP_DEVICE void note_taken(unit_run run) const {
    if (run.words() <= lanes_) return;
    u64 const first = (run.first + table_type::group_units - 1) / table_type::group_units;
    u64 const end = (run.first + run.units) / table_type::group_units;
    WARPHEAP_NO_UNROLL
    for (u64 group = first + rank_; group < end; group += lanes_) {
      // relaxed: a hint, which the compare-exchange checks.
      group_word seen{table_.group(group).load(order::relaxed)};
      group_word const now = (seen.noted() ? seen : seen.noted_anew(table_.units_of_group(group))).with({0, 0, 0});
      // release: our marks happen before the looks of a thread that acquires the note; pairs with
      // the acquire in read_note().
      table_.group(group).compare_exchange(seen.word, now.word, order::release, order::relaxed);
    }
  }

  table_type table_;
  lane_mask active_;
  u32 rank_;
  u32 lanes_;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::rw_malloc_parts
