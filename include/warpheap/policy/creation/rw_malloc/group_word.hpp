// What is known of the runs in a group of words: so that who looks for a long run need not look at
// every word.
//
//    63    40   39      38     26 25    13 12     0
//   |  turn   | noted | longest  | at end | at start |     in units, of a group of up to 4,096
//
//   G1  noted: every word of the group is watched, a bit that a search sets before it looks at the
//       word, and that stays; and no run within the group is longer than `longest`, nor those at
//       its start and end than is said. Who frees units of a watched word clears `noted` before the
//       free returns; whoever takes units leaves it, as runs only get shorter.
//   G2  what is noted was seen by who read the word noted, with the same turn, before it looked at
//       the first word of the group; each time `noted` is set anew the turn is another. So a
//       compare-exchange from what was read then fails if units came free since.
//
// A group whose runs are not known yet, and whose words are about to be looked at, is noted as all
// free: that is true whatever they hold.
#pragma once

#include "../random_walk/walk_word.hpp"
#include "run_math.hpp"

namespace warpheap {

/// Free units of consecutive units: at their start, at their end, and in their longest run.
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

  /// Of a word of units: whether it is watched.
  static constexpr u64 watch_bit = u64{1} << 33;
  WARPHEAP_HOST_DEVICE static constexpr bool watches(walk_word seen) { return (seen.word & watch_bit) != 0; }

  u64 word;

  WARPHEAP_HOST_DEVICE constexpr bool noted() const { return (word & noted_bit) != 0; }
  WARPHEAP_HOST_DEVICE constexpr u32 at_start() const { return field(0); }
  WARPHEAP_HOST_DEVICE constexpr u32 at_end() const { return field(1); }
  WARPHEAP_HOST_DEVICE constexpr u32 longest() const { return field(2); }

  /// With other runs, in the same turn.
  WARPHEAP_HOST_DEVICE constexpr group_word with(free_span runs) const {
    u64 const fields = u64{runs.longest} << (2 * field_bits) | u64{runs.at_end} << field_bits | runs.at_start;
    return {(word & ~(noted_bit - 1)) | fields};
  }
  /// Noted again, as all of its `units` free (G2).
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
