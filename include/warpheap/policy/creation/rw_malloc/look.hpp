// SPDX-License-Identifier: Apache-2.0
// A look of a warp at consecutive words for a run of free units. Each lane looks at a piece of
// them. The lanes then join what they saw at the ends of the pieces, so that runs are found
// wherever they begin and end.
//
// Blocks go to multiples of their length, so that blocks of one length leave no gaps that are too
// small for one. A run that has no such place and is long enough serves a block at its beginning.
// That a run is like this is known only if both its ends were seen.
#pragma once

#include "table.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace rw_malloc_parts {

/// The free run that reaches up to where a look begins, or to where it has come.
struct open_run {
  u64 start;           ///< its first unit; without a run, where the look begins
  bool begins = true;  ///< the unit before it was seen taken, or there is none
};

/// Whether a look sets the watch of the words that it looks at (rw.G1).
enum class watching : bool { no, yes };

/// Units that a read-modify-write saw taken. They count as taken whatever has become of them.
struct taken_units {
  u64 below = 0;                 ///< all units below it
  u64 unit = run_wish::nowhere;  ///< and this one, which is not below

  WARPHEAP_HOST_DEVICE constexpr bool any() const { return below != 0 || unit != run_wish::nowhere; }
  /// Those in the 32 units from `base` on.
  WARPHEAP_HOST_DEVICE constexpr u32 in_word(u64 base) const {
    return part_of_word(base, 0, below) | (unit - base < 32 ? 1u << (unit - base) : 0);
  }
};

/// Looks of the lanes of `active`, which call together.
template <creation::rw_malloc_config Config, class Faults>
class look {
  using table_type = table<Config>;

 public:
  static constexpr u64 none = table_type::none;
  static constexpr u32 lane_words = 8;  ///< words that a lane loads at once

  /// What all lanes know after a look.
  struct outcome {
    u64 place;       ///< where the block that is looked for may go
    open_run after;  ///< the run that reaches up to the end
    free_span runs;  ///< of the words alone
  };

  WARPHEAP_DEVICE look(table_type const& table, lane_mask active)
      : table_{table}, active_{active}, rank_{popcount(active & simt::lanes_below())}, lanes_{popcount(active)} {}

  WARPHEAP_DEVICE u32 rank() const { return rank_; }
  WARPHEAP_DEVICE u32 lanes() const { return lanes_; }

  /// Looks at the words of [first, end), at least one. `before` is the run that reaches up to them.
  /// `watches` says whether they are watched from now on. All lanes pass the same arguments.
  WARPHEAP_DEVICE outcome at(u64 first, u64 end, run_wish sought, open_run before, watching watches,
                             taken_units taken = {}) const {
    u64 const each = (end - first + lanes_ - 1) / lanes_;
    view const seen =
        view_of(at_most(first + rank_ * each, end), at_most(first + (rank_ + 1) * each, end), sought, watches, taken);
    lane_mask const stopping = simt::ballot(active_, seen.stops);
    open_run const mine = opened_below(stopping & simt::lanes_below(), seen.tail, before);
    u64 place = sought.place_in_run(mine.start, seen.head - mine.start, seen.stops && mine.begins);
    if (place == none) place = seen.place;
    open_run const after = opened_below(stopping, seen.tail, before);
    u64 const units = 32 * end - after.start;
    u64 const last = sought.place_in_run(after.start, units, after.begins && end == table_.words());
    lane_mask const finding = simt::ballot(active_, place != none);
    place = simt::shuffle(active_, place, finding != 0 ? lowest_bit(finding) : simt::lane_id());
    return {finding != 0 ? place : last, after, runs_of(seen, stopping, 32 * first, 32 * end, mine.start, after.start)};
  }

  /// The run that is open behind the lanes of `stopping`, which have seen the beginning of one:
  /// that of the highest of them, at its `tail`. `before` if there are none.
  WARPHEAP_DEVICE open_run opened_below(lane_mask stopping, u64 tail, open_run before) const {
    u64 const theirs = simt::shuffle(active_, tail, stopping != 0 ? highest_bit(stopping) : simt::lane_id());
    return stopping != 0 ? open_run{theirs, true} : before;
  }

 private:
  /// What a lane sees in its words.
  struct view {
    u64 head;            ///< where the run that touches their start ends
    u64 tail;            ///< where the run that touches their end begins
    bool stops = false;  ///< not all of them are free
    u32 longest = 0;     ///< units of the longest run that touches neither
    u64 place = none;    ///< where the block goes, in a run that touches neither
  };

  WARPHEAP_HOST_DEVICE static u64 at_most(u64 index, u64 end) { return index < end ? index : end; }

  /// Looks at the words of [first, end), which may be none.
  WARPHEAP_DEVICE view view_of(u64 first, u64 end, run_wish sought, watching watches, taken_units taken) const {
    view seen{32 * end, 32 * first};
    WARPHEAP_NO_UNROLL
    for (u64 at = first; at < end; at += lane_words) {
      u32 words[lane_words];  // loads before their use
      for (u32 i = 0; i < lane_words; ++i)
        words[i] = at + i < end ? free_units(static_cast<u32>(at + i), watches) : full_word;
      if (taken.any())
        for (u32 i = 0; i < lane_words; ++i)
          if (at + i < end) words[i] &= ~taken.in_word(32 * (at + i));
      for (u32 i = 0; i < lane_words; ++i)
        if (words[i] != full_word) seen = beyond(seen, 32 * (at + i), words[i], sought);
    }
    return seen;
  }

  /// `seen`, extended by a word that is not all free.
  WARPHEAP_DEVICE static view beyond(view seen, u64 base, u32 free, run_wish sought) {
    u32 const ahead = free_at_start(free), behind = free_at_end(free);
    if (!seen.stops) {
      seen.stops = true;
      seen.head = base + ahead;
    } else {
      u64 const length = base + ahead - seen.tail;
      if (length > seen.longest) seen.longest = static_cast<u32>(length);
      if (seen.place == none) seen.place = sought.place_in_run(seen.tail, length, true);
    }
    seen.tail = base + 32 - behind;
    u32 const inner = free & ~low_mask32(ahead) & low_mask32(32 - behind);
    if (inner == 0) return seen;
    WARPHEAP_NO_UNROLL
    while (run_starts(inner, seen.longest + 1) != 0) ++seen.longest;
    if (seen.place == none && sought.units <= seen.longest) seen.place = sought.place_in_word(base, inner, true);
    return seen;
  }

  /// The free units of a word.
  WARPHEAP_DEVICE u32 free_units(u32 index, watching watches) const {
    walk_word seen = table_.look_at(index);
    if (watches == watching::yes && !unit_word::is_watched(seen)) seen = Faults::watch(table_.word(index));
    return seen.locked() && !Faults::waits_for_locks ? 0 : seen.free();
  }

  WARPHEAP_DEVICE free_span runs_of(view const& seen, lane_mask stopping, u64 base, u64 end, u64 start,
                                    u64 open) const {
    u64 const from = start > base ? start : base, tail = end - (open > base ? open : base);
    u64 const head = seen.head - from;
    u32 mine = 0;
    if (seen.stops) mine = head > seen.longest ? static_cast<u32>(head) : seen.longest;
    u32 longest = static_cast<u32>(tail);
    WARPHEAP_NO_UNROLL
    while (lane_mask const longer = simt::ballot(active_, mine > longest))
      longest = simt::shuffle(active_, mine, lowest_bit(longer));
    u64 const first = simt::shuffle(active_, seen.head, stopping != 0 ? lowest_bit(stopping) : simt::lane_id());
    return {static_cast<u32>((stopping != 0 ? first : end) - base), static_cast<u32>(tail), longest};
  }

  table_type table_;
  lane_mask active_;
  u32 rank_;
  u32 lanes_;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::rw_malloc_parts
