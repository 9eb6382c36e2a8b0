// SPDX-License-Identifier: Apache-2.0
// Runs of free units within a word and across words: pure functions, tested without threads. A word
// has 32 units, bit i set where unit i is free.
#pragma once

#include "../../../util/bits.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace rw_malloc_parts {

/// Free units from the word's start on, and up to its end; 32 of a word that is all free.
WARPHEAP_HOST_DEVICE constexpr u32 free_at_start(u32 free) { return free == full_word ? 32 : lowest_bit(~free); }
WARPHEAP_HOST_DEVICE constexpr u32 free_at_end(u32 free) { return free == full_word ? 32 : 31 - highest_bit(~free); }

/// Bit i set where `length` free units start at i, within the word; `length` is at least 1.
WARPHEAP_HOST_DEVICE constexpr u32 run_starts(u32 free, u32 length) {
  if (length > 32) return 0;
  for (u32 covered = 1; covered < length;) {
    u32 const step = covered < length - covered ? covered : length - covered;
    free &= free >> step;
    covered += step;
  }
  return free;
}

/// The units of `free` in runs of at least `least`, and those of the runs at both ends, which other
/// words may continue.
WARPHEAP_HOST_DEVICE constexpr u32 without_short_runs(u32 free, u32 least) {
  if (least <= 1 || free == full_word) return free;
  u32 kept = run_starts(free, least);
  for (u32 covered = 1; covered < least && covered < 32;) {
    u32 const step = covered < least - covered ? covered : least - covered;
    kept |= kept << step;
    covered += step;
  }
  u32 const at_end = free_at_end(free);
  return kept | low_mask32(free_at_start(free)) | (at_end != 0 ? full_word << (32 - at_end) : 0);
}

/// The part of [from, to) in the 32 units from `base` on.
WARPHEAP_HOST_DEVICE constexpr u32 part_of_word(u64 base, u64 from, u64 to) {
  u64 const first = from > base ? from - base : 0, end = to > base ? to - base : 0;
  u32 const low = first < 32 ? static_cast<u32>(first) : 32, high = end < 32 ? static_cast<u32>(end) : 32;
  return low < high ? low_mask32(high) & ~low_mask32(low) : 0;
}

/// The free units of `Words` consecutive words, as one row of units.
template <u32 Words>
struct unit_row {
  static constexpr u32 units = 32 * Words;

  u32 word[Words];

  WARPHEAP_HOST_DEVICE constexpr bool any() const {
    u32 all = word[0];
    for (u32 k = 1; k < Words; ++k) all |= word[k];
    return all != 0;
  }
  WARPHEAP_HOST_DEVICE constexpr bool full() const {
    u32 all = word[0];
    for (u32 k = 1; k < Words; ++k) all &= word[k];
    return all == full_word;
  }

  struct run {
    u32 start, length;
  };
  /// The run of free units with the lowest start; of length 0 if no unit is free.
  WARPHEAP_HOST_DEVICE constexpr run lowest_run() const {
    run found = lowest_run_of(word[0]);
    for (u32 k = 1; k < Words; ++k) {
      if (found.length == 0) found = {32 * k + lowest_run_of(word[k]).start, lowest_run_of(word[k]).length};
      else if (found.start + found.length == 32 * k) found.length += free_at_start(word[k]);
    }
    return found;
  }
  /// Free units from the row's start on.
  WARPHEAP_HOST_DEVICE constexpr u32 at_start() const {
    u32 length = free_at_start(word[0]);
    for (u32 k = 1; k < Words; ++k)
      if (length == 32 * k) length += free_at_start(word[k]);
    return length;
  }

 private:
  WARPHEAP_HOST_DEVICE static constexpr run lowest_run_of(u32 free) {
    u32 const lowest = free != 0 ? lowest_bit(free) : 0;
    u32 const ahead = free_at_start(free >> lowest);
    return {lowest, ahead < 32 - lowest ? ahead : 32 - lowest};
  }
};

/// A block that is looked for.
struct run_wish {
  static constexpr u64 nowhere = ~u64{0};

  u64 units;      ///< at least 1
  u64 align = 1;  ///< the block starts at a multiple of it, in units; a power of two
  u64 phase = 0;  ///< unit + phase is to be a multiple of align; less than align

  /// Units from `start` to the first suitable place. Without an alignment that is the next multiple
  /// of the length, so that blocks of one length lie side by side with nothing between them.
  WARPHEAP_HOST_DEVICE constexpr u64 padding(u64 start) const {
    if (align != 1) return (0 - (start + phase)) & (align - 1);
    u64 const beyond = start % units;
    return beyond != 0 ? units - beyond : 0;
  }

  /// Where in a run of free units the block goes: at a suitable place, or, if `anywhere`, at any
  /// that is aligned.
  WARPHEAP_HOST_DEVICE constexpr u64 place_in_run(u64 start, u64 length, bool anywhere) const {
    if (length < units) return nowhere;
    u64 const pad = padding(start);
    if (pad <= length - units) return start + pad;
    return anywhere && align == 1 ? start : nowhere;
  }

  /// Where the block goes in the word of the 32 units from `base` on, chosen as in place_in_run().
  WARPHEAP_HOST_DEVICE constexpr u64 place_in_word(u64 base, u32 free, bool anywhere) const {
    u32 const starts = units <= 32 ? run_starts(free, static_cast<u32>(units)) : 0;
    if (starts == 0) return nowhere;
    u64 const step = align != 1 ? align : units;
    for (u64 i = padding(base); i < 32; i += step)
      if (starts >> i & 1) return base + i;
    return anywhere && align == 1 ? base + lowest_bit(starts) : nowhere;
  }
};

/// A block as its marks and words describe it.
struct unit_run {
  u64 first;
  u64 units;

  WARPHEAP_HOST_DEVICE u32 first_word() const { return static_cast<u32>(first / 32); }
  WARPHEAP_HOST_DEVICE u32 words() const { return static_cast<u32>((first + units - 1) / 32) - first_word() + 1; }
  /// Its units in its i-th word.
  WARPHEAP_HOST_DEVICE u32 part(u32 i) const {
    if (i != 0 && i + 1 < words()) return full_word;  // most words of a long run
    return part_of_word(u64{32} * (first_word() + i), first, first + units);
  }
  /// The extent that its i-th word must have (rw.U3).
  WARPHEAP_HOST_DEVICE u32 extent(u32 i) const { return i == 1 && words() > 2 ? words() : 0; }
};

static_assert(free_at_start(0b1011) == 2 && free_at_end(0xc000'0000u) == 2 && free_at_end(1) == 0);
static_assert(run_starts(0b0111'0110, 3) == 0b0001'0000 && run_starts(full_word, 32) == 1 &&
              run_starts(full_word, 33) == 0);
static_assert(without_short_runs(0b1000'0000'0000'0000'0000'1110'0110'0001, 3) ==
              0b1000'0000'0000'0000'0000'1110'0000'0001);
static_assert(part_of_word(64, 70, 200) == 0xffff'ffc0u && part_of_word(64, 0, 65) == 1 &&
              part_of_word(64, 96, 97) == 0);
static_assert(unit_row<4>{0, 3u << 30, full_word, 1}.lowest_run().start == 62 &&
              unit_row<4>{0, 3u << 30, full_word, 1}.lowest_run().length == 35);
static_assert(unit_row<2>{6, full_word}.lowest_run().length == 2 && unit_row<2>{}.lowest_run().length == 0);
static_assert(unit_row<2>{full_word, 5}.at_start() == 33 && unit_row<2>{1, full_word}.at_start() == 1);
static_assert(run_wish{5}.place_in_run(7, 8, false) == 10 && run_wish{5}.place_in_run(7, 7, true) == 7 &&
              run_wish{4, 8, 3}.place_in_run(0, 8, true) == run_wish::nowhere);

}}}  // namespace warpheap::WARPHEAP_BACKEND::rw_malloc_parts
