// What is known of the runs in a group of words, so that a search for a long run need not look at
// every word.
//
//    63    40   39      38     26 25    13 12     0
//   |  turn   | noted | longest  | at end | at start |     in units, of a group of up to 4,096
//
//   G1  noted: every word of the group is watched, no run within the group is longer than
//       `longest`, and those at its start and end are no longer than their fields say. A search
//       sets the watch bit of a word before it looks at the word, and the bit stays. A thread that
//       frees units of a watched word clears `noted` before the free returns. A thread that takes
//       units leaves it, as runs only get shorter.
//   G2  the lanes that note lengths read the group's word, noted and with the same turn, before
//       they looked at the first word of the group. Each time `noted` is set anew the turn changes.
//       So a compare-exchange from what was read then fails if units came free since.
//
// A group whose runs are not known yet is noted as all free when its words are about to be looked
// at. That is true whatever they hold, as lengths are upper bounds.
#pragma once

#include "../shared/walk_word.hpp"
#include "run_math.hpp"

namespace warpheap {

/// Free units of a row of units: at its start, at its end, and in its longest run.
struct free_span {
  u32 at_start;
  u32 at_end;
  u32 longest;
};

struct group_word {
  static constexpr u32 most_units = 4096;
  static constexpr u32 field_bits = 13;
  static constexpr u64 noted_bit = u64{1} << (3 * field_bits);
  static constexpr u64 turn_step = noted_bit << 1;

  /// Set in a word of units while the word is watched.
  static constexpr u64 watch_bit = u64{1} << 33;
  WARPHEAP_HOST_DEVICE static constexpr bool watches(walk_word seen) { return (seen.word & watch_bit) != 0; }

  u64 word;

  WARPHEAP_HOST_DEVICE constexpr bool noted() const { return (word & noted_bit) != 0; }
  WARPHEAP_HOST_DEVICE constexpr u32 at_start() const { return field(0); }
  WARPHEAP_HOST_DEVICE constexpr u32 at_end() const { return field(1); }
  WARPHEAP_HOST_DEVICE constexpr u32 longest() const { return field(2); }

  /// This word with other runs, in the same turn.
  WARPHEAP_HOST_DEVICE constexpr group_word with(free_span runs) const {
    u64 const fields = u64{runs.longest} << (2 * field_bits) | u64{runs.at_end} << field_bits | runs.at_start;
    return {(word & ~(noted_bit - 1)) | fields};
  }
  /// This word noted anew, in the next turn, with all `units` units free (G2).
  WARPHEAP_HOST_DEVICE constexpr group_word noted_anew(u32 units) const {
    return group_word{(word | noted_bit) + turn_step}.with({units, units, units});
  }

 private:
  WARPHEAP_HOST_DEVICE constexpr u32 field(u32 i) const {
    return static_cast<u32>(word >> (i * field_bits) & low_mask(field_bits));
  }
};

static_assert(!group_word{0}.noted() && group_word{0}.noted_anew(4096).longest() == 4096);
static_assert(group_word{0}.noted_anew(64).with({1, 2, 3}).at_end() == 2 &&
              group_word{~u64{0}}.noted_anew(64).word >> 40 == 0);

}  // namespace warpheap
