// SPDX-License-Identifier: Apache-2.0
// The walk of a warp whose lanes want runs of consecutive units. The lanes look at a window of
// consecutive words from a random place on, one word each, or two or four (words_per_lane). They
// lock the words that have free units, and share out the runs that they find, also those that go on
// from one word into the next. Each lane publishes what was taken of a word with one operation,
// which opens the lock too.
//
// Runs too short for every lane are left out beforehand. A run goes to the lowest lane whose block
// fits, and to the lanes that want as much. A block starts at a multiple of its length, so that
// blocks of one length leave no gaps that are too small for one.
//
// Source: Pham et al. 2022, section 4.3 and algorithm 5. Differs: docs/design/rw_malloc.md.
#pragma once

#include "../../../sync/lane_random.hpp"
#include "../../../sync/warp_aggregate.hpp"
#include "table.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace rw_malloc_parts {

/// What a lane wants of a walk.
struct window_wish {
  u32 units;              ///< 0: nothing
  u32 grid;               ///< the block starts at a multiple of it; at least 1
  bool is_parts = false;  ///< units of several lanes, a block for each: without an extent (rw.U3)
};

/// The walks of the lanes of `active`, which hold the same heap and make every call together.
template <creation::rw_malloc_config Config, class Faults>
class walk {
  using table_type = table<Config>;

 public:
  static constexpr u64 none = table_type::none;
  static constexpr u32 lane_words = Config.words_per_lane, lane_units = 32 * lane_words;

  WARPHEAP_DEVICE walk(table_type const& table, lane_mask active)
      : table_{table},
        active_{active},
        rank_{popcount(active & simt::lanes_below())},
        random_{lane_random_sequence()} {}

  /// Windows that were looked at.
  WARPHEAP_DEVICE u32 steps() const { return steps_; }

  /// A word to begin a search at.
  WARPHEAP_DEVICE u32 somewhere() { return random_.below(table_.words()); }

  /// The first unit of a block for the calling lane, or none, which proves nothing. Ends after
  /// `most` windows in a row without a block for any lane, or after two if the heap was full once.
  WARPHEAP_DEVICE u64 run(window_wish wish, u32 most) {
    u32 const lanes = popcount(active_), words = table_.words(), window = lane_words * lanes;
    if (wish.units > 32 * window) wish.units = 0;  // no window has that
    u64 unit = none;
    lane_mask needing = simt::ballot(active_, wish.units != 0);
    for (u32 idle_windows = 0; needing != 0 && idle_windows < most;) {
      ++steps_;
      u32 first = words > window ? random_.below(words - window + 1) : 0;
      first = simt::shuffle(active_, first, lowest_bit(active_));
      u32 place = nowhere;
      if constexpr (lane_words == 1) place = look(first, needing, wish);
      else place = look_wide(first, needing, wish);
      if (place != nowhere) {
        unit = u64{32} * first + place;
        wish.units = 0;
      }
      lane_mask const left = simt::ballot(active_, wish.units != 0);
      idle_windows = left == needing ? idle_windows + 1 : 0;
      needing = left;
      if (idle_windows >= least_idle_windows && was_full_once_) break;
    }
    // The old owners' writes to our units, and to the marks, happen before our return, also if
    // other lanes locked the units for us.
    simt::sync_warp(active_);
    return unit;
  }

 private:
  using row_type = unit_row<lane_words>;
  static constexpr u32 nowhere = ~u32{0};
  static constexpr u32 least_idle_windows = 2;

  /// Looks at one window, a word a lane. Returns where in it the lane's block starts.
  WARPHEAP_DEVICE u32 look(u32 first, lane_mask needing, window_wish wish) {
    u32 const index = first + rank_;
    bool const exists = index < table_.words();
    walk_word seen = exists ? table_.look_at(index) : walk_word{full_word};
    was_full_once_ = simt::ballot(active_, exists && unit_word::is_watched(seen)) != 0;
    u32 const least = least_wanted(needing, wish);
    u32 left = seen.locked() ? 0 : without_short_runs(seen.free(), least);
    bool mine = false;
    if (left != 0) {
      seen = Faults::try_lock(table_.word(index));
      mine = !seen.locked();
      left = mine ? without_short_runs(seen.free(), least) : 0;
    }
    u64 taken[lane_words] = {};
    u32 const place = share(first, row_type{left}, taken, wish);
    if (mine) Faults::publish(table_.word(index), taken[0]);
    return place;
  }

  /// As look(), with several words a lane. A function of its own, because look() as a loop of one
  /// turn would become other machine code.
  WARPHEAP_DEVICE u32 look_wide(u32 first, lane_mask needing, window_wish wish) {
    u32 const index = first + lane_words * rank_, words = table_.words();
    walk_word seen[lane_words];
    bool watched = false;
    for (u32 k = 0; k < lane_words; ++k) {
      seen[k] = index + k < words ? table_.look_at(index + k) : walk_word{full_word};
      watched = watched || unit_word::is_watched(seen[k]);
    }
    was_full_once_ = simt::ballot(active_, watched) != 0;
    u32 const least = least_wanted(needing, wish);
    row_type left;
    bool mine[lane_words];
    for (u32 k = 0; k < lane_words; ++k) {
      left.word[k] = seen[k].locked() ? 0 : without_short_runs(seen[k].free(), least);
      mine[k] = false;
      if (left.word[k] == 0) continue;
      seen[k] = Faults::try_lock(table_.word(index + k));
      mine[k] = !seen[k].locked();
      left.word[k] = mine[k] ? without_short_runs(seen[k].free(), least) : 0;
    }
    u64 taken[lane_words] = {};
    u32 const place = share(first, left, taken, wish);
    for (u32 k = 0; k < lane_words; ++k)
      if (mine[k]) Faults::publish(table_.word(index + k), taken[k]);
    return place;
  }

  /// The least number of units that a lane wants, or 31 if all want more.
  WARPHEAP_DEVICE u32 least_wanted(lane_mask needing, window_wish wish) const {
    u32 wanted = 0;
    if (needing >> simt::lane_id() & 1) wanted = 1u << (wish.units < 31 ? wish.units : 31);
    return lowest_bit(simt::reduce_or(active_, wanted));
  }

  /// Shares out the runs that the lanes have `left`, the lowest first. Sets `taken` to what is
  /// taken of the lane's words, and returns where the lane's block starts.
  WARPHEAP_DEVICE u32 share(u32 first, row_type left, u64 (&taken)[lane_words], window_wish wish) const {
    u32 place = nowhere;
    u32 const phase = static_cast<u32>(u64{32} * first % wish.grid);
    for (;;) {
      lane_mask const needing = simt::ballot(active_, wish.units != 0 && place == nowhere);
      lane_mask const having = simt::ballot(active_, left.any());
      if (needing == 0 || having == 0) return place;
      auto const [start, length] = lowest_run(left, having);
      u32 const beyond = (phase + start) % wish.grid, at = beyond != 0 ? start + wish.grid - beyond : start;
      bool const fits = wish.units != 0 && place == nowhere && at + wish.units <= start + length;
      lane_mask const fitting = simt::ballot(active_, fits);
      if (fitting == 0) {
        // no lane's block fits
        for (u32 k = 0; k < lane_words; ++k) left.word[k] &= ~part(k, start, start + length);
        continue;
      }
      u32 const to = serve(fits, at, start + length, lowest_bit(fitting), taken, wish, place);
      for (u32 k = 0; k < lane_words; ++k) left.word[k] &= ~part(k, start, to);
    }
  }

  /// Gives lane `served` the block that fits at its `at`, and blocks behind it to all lanes that
  /// want the same, as far as the run goes, which ends at `end`. Returns where the blocks end.
  WARPHEAP_DEVICE u32 serve(bool fits, u32 at, u32 end, u32 served, u64 (&taken)[lane_words], window_wish wish,
                            u32& place) const {
    u32 const mine = 2 * wish.units + (wish.is_parts ? 1 : 0);
    u32 const theirs = simt::shuffle(active_, mine, served), units = theirs / 2;
    u32 const from = simt::shuffle(active_, at, served), room = (end - from) / units;
    lane_mask const alike = simt::ballot(active_, fits && mine == theirs);
    u32 const blocks = popcount(alike) < room ? popcount(alike) : room, to = from + blocks * units;
    u32 const turn = popcount(alike & simt::lanes_below());
    if ((alike >> simt::lane_id() & 1) != 0 && turn < blocks) place = from + turn * units;
    for (u32 k = 0; k < lane_words; ++k) {
      taken[k] |= part(k, from, to);
      if (theirs % 2 == 0) taken[k] |= u64{extent_of_second_word(k, from, units, blocks)} << unit_word::extent_shift;
    }
    return to;
  }

  /// The part of [from, to), units of the window, in the lane's k-th word.
  WARPHEAP_DEVICE u32 part(u32 k, u32 from, u32 to) const {
    return part_of_word(lane_units * rank_ + 32 * k, from, to);
  }

  /// The extent of the lane's k-th word (rw.U3), if `blocks` blocks lie side by side from unit
  /// `from` of the window on.
  WARPHEAP_DEVICE u32 extent_of_second_word(u32 k, u32 from, u32 units, u32 blocks) const {
    u32 const word = lane_words * rank_ + k, base = 32 * word;
    if (units <= 33 || base < 32 || from + blocks * units <= base)
      return 0;  // blocks of two words at most, or none from before that reaches this one
    u32 const before = base - 32 > from ? base - 32 - from : 0, index = (before + units - 1) / units;
    // the first block that begins in the word before this one, or later
    unit_run const block{from + index * units, units};
    return index < blocks && block.first_word() + 1 == word ? block.extent(1) : 0;
  }

  struct run_found {
    u32 start, length;  ///< units from the window's start; units
  };

  /// The lowest run that the lanes of `having` have left, joined across words. No lane below them
  /// has anything left.
  WARPHEAP_DEVICE run_found lowest_run(row_type left, lane_mask having) const {
    u32 const giver = lowest_bit(having);
    auto const lowest = left.lowest_run();
    lane_mask const above = active_ & ~lanes_before(giver + 1);
    lane_mask const full = simt::ballot(active_, left.full());
    lane_mask const stopping = above & ~full;
    u32 const next = stopping != 0 ? lowest_bit(stopping) : giver;
    u32 const theirs = simt::shuffle(active_, (lane_units * rank_ + lowest.start) << 8 | lowest.length, giver);
    u32 const at_start = simt::shuffle(active_, left.at_start(), next);
    run_found found{theirs >> 8, theirs & 255};
    if ((found.start + found.length) % lane_units == 0) {
      lane_mask const between = above & full & (stopping != 0 ? lanes_before(next) : full_mask);
      found.length += lane_units * popcount(between) + (stopping != 0 ? at_start : 0);
    }
    return found;
  }

  table_type table_;
  lane_mask active_;
  u32 rank_;
  random_sequence random_;
  u32 steps_ = 0;
  bool was_full_once_ = false;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::rw_malloc_parts
