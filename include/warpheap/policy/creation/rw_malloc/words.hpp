// SPDX-License-Identifier: Apache-2.0
// The packed words: the marks of blocks, 32 units, and what is noted of a group of words.
#pragma once

#include "../shared/walk_word.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace rw_malloc_parts {

/// Where blocks start and end among 32 units.
///
///    63      32 31       0
///   |   ends   |  starts  |
///
///   rw.U1  a live block's first unit has a start mark and its last an end mark; there are no
///       others. The thread that takes the block sets them, the end no later than the start, before
///       it
///       returns the address. The thread that frees it clears them before the units are free.
///   rw.U2  the thread that clears the start mark by a read-modify-write that found it set frees
///       the block; no other does. It may have received nothing from the block's owner: a second
///       free knows the address from an earlier block there. So the start mark itself hands over
///       the end mark and the extent, by release and acquire.
struct unit_marks {
  u64 word;

  WARPHEAP_HOST_DEVICE static constexpr u64 start_bit(u64 unit) { return u64{1} << unit % 32; }
  WARPHEAP_HOST_DEVICE static constexpr u64 end_bit(u64 unit) { return u64{1} << (32 + unit % 32); }

  WARPHEAP_HOST_DEVICE constexpr u32 starts() const { return static_cast<u32>(word); }
  WARPHEAP_HOST_DEVICE constexpr u32 ends() const { return static_cast<u32>(word >> 32); }
  WARPHEAP_HOST_DEVICE constexpr bool has_start(u64 unit) const { return (word >> unit % 32 & 1) != 0; }
  WARPHEAP_HOST_DEVICE constexpr bool has_end(u64 unit) const { return (word >> (32 + unit % 32) & 1) != 0; }
};

/// What a word of 32 units has beside a walk_word's lock L and its taken bits.
///
///    63       34 33  32  31      0
///   |  extent   | W | L |  taken  |
///
///   W       the word is watched (rw.G1)
///
///   rw.U3  if a block touches three words or more, the extent of its second word is that number.
///       All other extents are 0. So two loads find a block's end however long it is.
struct unit_word {
  static constexpr u64 watch_bit = u64{1} << 33;
  static constexpr u32 extent_shift = 34;
  /// The bits that a free leaves in a word that its block has to itself: they are no block's.
  static constexpr u64 others_bits = walk_word::lock_bit | watch_bit;

  WARPHEAP_HOST_DEVICE static constexpr bool is_watched(walk_word seen) { return (seen.word & watch_bit) != 0; }
  WARPHEAP_HOST_DEVICE static constexpr u32 extent(walk_word seen) {
    return static_cast<u32>(seen.word >> extent_shift);
  }
};

/// Free units of a row of units: at its start, at its end, and in its longest run.
struct free_span {
  u32 at_start;
  u32 at_end;
  u32 longest;
};

/// What is known of the runs in a group of words, so that a search for a long run need not look at
/// every word.
///
///    63    40   39      38     26 25    13 12     0
///   |  turn   | noted | longest  | at end | at start |     in units, of a group of up to 4,096
///
///   rw.G1  noted: every word of the group is watched, no run within the group is longer than
///       `longest`, and those at its start and end are no longer than their fields say. A search
///       sets the watch bit of a word before it looks at the word, and the bit stays. A thread that
///       frees units of a watched word clears `noted` before the free returns. A thread that takes
///       units leaves it, as runs only get shorter.
///   rw.G2  the lanes that note lengths read the group's word, noted and with the same turn, before
///       they looked at the first word of the group. Each time `noted` is set anew the turn
///       changes. So a compare-exchange from what was read then fails if units came free since.
///
/// A group whose runs are not known yet is noted as all free when its words are about to be looked
/// at. That is true whatever they hold, as lengths are upper bounds.
struct group_word {
  static constexpr u32 most_units = 4096;
  static constexpr u32 field_bits = 13;
  static constexpr u64 noted_bit = u64{1} << (3 * field_bits);
  static constexpr u64 turn_step = noted_bit << 1;

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
  /// This word noted anew, in the next turn, with all `units` units free (rw.G2).
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

}}}  // namespace warpheap::WARPHEAP_BACKEND::rw_malloc_parts
