// A look of a warp at consecutive words for a run of free units: the lanes have a piece each, and
// put together what they saw at its ends, so that runs are found wherever they begin and end.
//
// Blocks go to multiples of their length, so that those of one length leave no gaps that fit none;
// a run that has no such place and is long enough serves one at its beginning. That is known only
// of a run both ends of which were seen.
#pragma once

#include "group_word.hpp"
#include "unit_table.hpp"

namespace warpheap::inline WARPHEAP_BACKEND {

/// The run that goes on up to where a look begins, or has come to.
struct open_run {
  u64 start;           ///< its first unit; where the look begins if there is none
  bool begins = true;  ///< the unit before it was seen taken, or there is none
};

/// Units that were seen taken by a read-modify-write, and count as that whatever has become of
/// them.
struct taken_units {
  u64 below = 0;                 ///< all of these
  u64 unit = run_wish::nowhere;  ///< and one that is not below

  WARPHEAP_HOST_DEVICE constexpr bool any() const { return below != 0 || unit != run_wish::nowhere; }
  /// Those in the 32 units from `base` on.
  WARPHEAP_HOST_DEVICE constexpr u32 in_word(u64 base) const {
    return part_of_word(base, 0, below) | (unit - base < 32 ? 1u << (unit - base) : 0);
  }
};

/// What the lanes of a warp look at together.
template <creation::rw_malloc_config Config, class Steps>
class run_look {
  using table_type = unit_table<Config>;

 public:
  static constexpr u64 none = table_type::none;
  static constexpr u32 lane_words = 8;  ///< words that a lane loads at once

  /// What all of them know then.
  struct outcome {
    u64 place;       ///< where the block may go that was looked for
    open_run after;  ///< the run at the end
    free_span runs;  ///< of the words alone
  };

  WARPHEAP_DEVICE run_look(table_type const& table, u32 company)
      : table_{table}, company_{company}, rank_{popcount(company & simt::lanes_below())}, lanes_{popcount(company)} {}

  WARPHEAP_DEVICE u32 rank() const { return rank_; }
  WARPHEAP_DEVICE u32 lanes() const { return lanes_; }

  /// The words of [first, end), at least one; `before` is the run that touches them. All words are
  /// watched from now on if `watches` (G1). All lanes call alike.
  WARPHEAP_DEVICE outcome at(u64 first, u64 end, run_wish sought, open_run before, bool watches,
                             taken_units taken = {}) const {
    u64 const each = (end - first + lanes_ - 1) / lanes_;
    view const seen =
        view_of(at_most(first + rank_ * each, end), at_most(first + (rank_ + 1) * each, end), sought, watches, taken);
    u32 const stopping = simt::ballot(company_, seen.stops);
    open_run const mine = opened_below(stopping & simt::lanes_below(), seen.tail, before);
    u64 place = sought.place_in_run(mine.start, seen.head - mine.start, seen.stops && mine.begins);
    if (place == none) place = seen.place;
    open_run const after = opened_below(stopping, seen.tail, before);
    u64 const units = 32 * end - after.start;
    u64 const last = sought.place_in_run(after.start, units, after.begins && end == table_.words());
    u32 const finding = simt::ballot(company_, place != none);
    place = simt::shuffle(company_, place, finding != 0 ? lowest_bit(finding) : simt::lane_id());
    return {finding != 0 ? place : last, after, runs_of(seen, stopping, 32 * first, 32 * end, mine.start, after.start)};
  }

  /// The run that is open behind the lanes of `stopping`, which have seen the beginning of one;
  /// `before` if there are none.
  WARPHEAP_DEVICE open_run opened_below(u32 stopping, u64 tail, open_run before) const {
    u64 const theirs = simt::shuffle(company_, tail, stopping != 0 ? highest_bit(stopping) : simt::lane_id());
    return stopping != 0 ? open_run{theirs, true} : before;
  }

 private:
  /// What a lane sees in its words.
  struct view {
    u64 head;            ///< where the run ends that touches their start
    u64 tail;            ///< where the run begins that touches their end
    bool stops = false;  ///< they are not all free
    u32 longest = 0;     ///< of the runs that touch neither
    u64 place = none;    ///< where the block goes that one of these is good for
  };

  WARPHEAP_HOST_DEVICE static u64 at_most(u64 index, u64 end) { return index < end ? index : end; }

  /// The words of [first, end), which may be none.
  WARPHEAP_DEVICE view view_of(u64 first, u64 end, run_wish sought, bool watches, taken_units taken) const {
    view seen{32 * end, 32 * first};
    WARPHEAP_NO_UNROLL
    for (u64 at = first; at < end; at += lane_words) {
      u32 words[lane_words];  // loads before their use
      for (u32 i = 0; i < lane_words; ++i)
        words[i] = at + i < end ? free_units(static_cast<u32>(at + i), watches) : full_mask;
      if (taken.any())
        for (u32 i = 0; i < lane_words; ++i)
          if (at + i < end) words[i] &= ~taken.in_word(32 * (at + i));
      for (u32 i = 0; i < lane_words; ++i)
        if (words[i] != full_mask) seen = beyond(seen, 32 * (at + i), words[i], sought);
    }
    return seen;
  }

  /// `seen`, and a word that is not all free.
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

  /// The free units of a word, which must tell from now on of what comes free if `watches` (G1).
  WARPHEAP_DEVICE u32 free_units(u32 index, bool watches) const {
    walk_word seen = table_.look_at(index);
    if (watches && !group_word::watches(seen)) seen = Steps::watch(table_.word(index));
    return seen.locked() && !Steps::waits_for_locks ? 0 : seen.free();
  }

  WARPHEAP_DEVICE free_span runs_of(view const& seen, u32 stopping, u64 base, u64 end, u64 start, u64 open) const {
    u64 const from = start > base ? start : base, tail = end - (open > base ? open : base);
    u64 const head = seen.head - from;
    u32 const mine = !seen.stops ? 0 : head > seen.longest ? static_cast<u32>(head) : seen.longest;
    u32 longest = static_cast<u32>(tail);
    WARPHEAP_NO_UNROLL
    while (u32 const longer = simt::ballot(company_, mine > longest))
      longest = simt::shuffle(company_, mine, lowest_bit(longer));
    u64 const first = simt::shuffle(company_, seen.head, stopping != 0 ? lowest_bit(stopping) : simt::lane_id());
    return {static_cast<u32>((stopping != 0 ? first : end) - base), static_cast<u32>(tail), longest};
  }

  table_type table_;
  u32 company_;
  u32 rank_;
  u32 lanes_;
};

}  // namespace warpheap::inline WARPHEAP_BACKEND
