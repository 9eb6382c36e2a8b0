// SPDX-License-Identifier: Apache-2.0
// The packed words of a heap of bins: an arena's room word, and a bin's role and life word. Pure
// functions. The word by which searches learn of room is described in room_watch.hpp.
#pragma once

#include "../../../../util/bits.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace bins {

// An arena's room word holds what a search that is about to fail needs to know of the arena, and
// one read-modify-write reads it:
//
//   63          52 51            28 27             0
//  | idle classes |    in limbo    |   free pages   |
//
//   bins.A1  idle: since the class's bit was last cleared, a bin of the class may have become empty
//       and stayed so.
//   bins.A2  in limbo: the number of bins and chunks on their way. A bin is counted from before its
//       units are taken until it is back in its chunk, or from when its pages are taken until its
//       units are signalled; a chunk, on its way from the supply. A search waits for them.
//   bins.A3  free pages of the arena's chunks: a page is counted from after it is freed until it is
//       taken.
//   bins.A4  at rest nothing is in limbo, and the class of every empty bin has its bit set.

/// The fields of an arena's room word: pure functions.
namespace room_word {

inline constexpr u64 one_page = 1, one_in_limbo = u64{1} << 28;

WARPHEAP_HOST_DEVICE constexpr u64 idle(u32 size_class) { return u64{1} << (52 + size_class); }
WARPHEAP_HOST_DEVICE constexpr u64 idle_classes(u64 word) { return word >> 52; }
WARPHEAP_HOST_DEVICE constexpr u64 in_limbo(u64 word) { return word >> 28 & low_mask(24); }
WARPHEAP_HOST_DEVICE constexpr u32 free_pages(u64 word) { return static_cast<u32>(word & low_mask(28)); }

}  // namespace room_word

/// Whose bin it is: the low half of the life word.
///
///   31     30 ... 8       7 ... 0
///  | live |  arena   | class + 1 |     0: never was a bin since the chunk was made
struct bin_role {
  u32 word = 0;

  bin_role() = default;
  WARPHEAP_HOST_DEVICE constexpr explicit bin_role(u32 seen) : word{seen} {}
  WARPHEAP_HOST_DEVICE constexpr bin_role(u32 arena, u32 size_class) : word{1u << 31 | arena << 8 | (size_class + 1)} {}

  WARPHEAP_HOST_DEVICE constexpr bool is_live() const { return word >> 31; }
  WARPHEAP_HOST_DEVICE constexpr bool was_bin() const { return word != 0; }
  WARPHEAP_HOST_DEVICE constexpr u32 arena() const { return word >> 8 & 0xffff; }
  WARPHEAP_HOST_DEVICE constexpr u32 size_class() const { return (word & 0xff) - 1; }
  /// The role after the bin's end. By it a block that was freed there can still be told from an
  /// address that never was a block.
  WARPHEAP_HOST_DEVICE constexpr bin_role ended() const { return bin_role{word & ~(1u << 31)}; }
};

// A bin's life word says whose the bin is, and counts the blocks that may still be claimed
// (bins.N1, bins.N2):
//
//   63     49   48   47      32 31          0
//  |         | dead |   free   |    role     |     dead = 1: being reclaimed, free is 0 for good

/// The fields of a life word.
namespace bin_life {

inline constexpr u64 one_block = u64{1} << 32, dead = u64{1} << 48;

WARPHEAP_HOST_DEVICE constexpr u64 of(bin_role role, u32 free) { return free * one_block | role.word; }
WARPHEAP_HOST_DEVICE constexpr bin_role role_of(u64 word) { return bin_role{static_cast<u32>(word)}; }
WARPHEAP_HOST_DEVICE constexpr u32 free_blocks(u64 word) { return static_cast<u32>(word >> 32) & 0xffff; }

/// How many of `wanted` blocks a bin has.
WARPHEAP_HOST_DEVICE constexpr u32 taken_of(u64 word, u32 wanted) {
  return free_blocks(word) < wanted ? free_blocks(word) : wanted;
}

/// Whether a bin can take `blocks` back by its count alone: it stays listed, and does not become
/// empty.
WARPHEAP_HOST_DEVICE constexpr bool stays_listed(u64 word, u32 blocks, u32 capacity) {
  return free_blocks(word) != 0 && free_blocks(word) + blocks < capacity;
}

}  // namespace bin_life

}}}  // namespace warpheap::WARPHEAP_BACKEND::bins
