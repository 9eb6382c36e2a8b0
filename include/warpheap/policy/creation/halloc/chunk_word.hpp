// Thirty-two chunks of a slab in one 64-bit word: which are taken, and which belong to one block.
//
//    63             32 31              0
//   |      joined      |     taken      |     bit i: chunk i is taken; bit 32 + i: and so is i + 1, by the same block
//
//   C1  a taken bit has one owner at most: whose fetch_or found it clear, until his fetch_and clears it.
//   C2  who owns a block's chunks alone changes their joined bits; a block of n chunks has n - 1 of them, and they lead from
//       its first chunk to its last. So a word tells where a block starts and how long it is. Of a chunk that is not taken
//       the joined bit is clear.
//   C3  blocks lie at multiples of their length, so none reaches into the next word.
//   C4  words change by read-modify-write alone, and only chunks that exist are ever set.
//
// Pure functions. Source: a bit a chunk, and blocks of several: Adinetz and Pleiter 2014. The joined bits are ours.
#pragma once

#include "../../../util/bits.hpp"

namespace warpheap::inline WARPHEAP_BACKEND::chunks {

inline constexpr u32 word_chunks = 32;

WARPHEAP_HOST_DEVICE constexpr u32 taken(u64 word) { return static_cast<u32>(word); }
WARPHEAP_HOST_DEVICE constexpr u32 joined(u64 word) { return static_cast<u32>(word >> 32); }

/// Where blocks of 2^length chunks of `free` could start.
WARPHEAP_HOST_DEVICE constexpr u32 starts_in(u32 free, u32 length) {
  if (length == 0) return free;
  free &= free >> 1;
  if (length == 1) return free & 0x5555'5555u;
  free &= free >> 2;
  if (length == 2) return free & 0x1111'1111u;
  free &= free >> 4;
  return free & 0x0101'0101u;
}

/// The chunks of blocks of 2^length that start at `starts`.
WARPHEAP_HOST_DEVICE constexpr u32 chunks_of(u32 starts, u32 length) {
  return starts * static_cast<u32>(low_mask(1u << length));
}

/// The joined bits of the blocks of 2^length that `chunks` are.
WARPHEAP_HOST_DEVICE constexpr u64 joints_of(u32 chunks, u32 length) {
  u32 const pattern = length == 0 ? 0 : length == 1 ? 0x5555'5555u : length == 2 ? 0x7777'7777u : 0x7f7f'7f7fu;
  return u64{chunks & pattern} << 32;
}

/// Whether a block starts at a chunk that is taken.
WARPHEAP_HOST_DEVICE constexpr bool starts_block(u64 word, u32 chunk) {
  return chunk == 0 || (joined(word) >> (chunk - 1) & 1) == 0;
}
/// The chunks of the block that starts there.
WARPHEAP_HOST_DEVICE constexpr u32 chunks_at(u64 word, u32 chunk) {
  u32 const count = lowest_bit(~(joined(word) >> chunk)) + 1;
  return static_cast<u32>(low_mask(count)) << chunk;
}

static_assert(starts_in(0b1111'0110, 1) == 0b0101'0000 && starts_in(0b1111'0110, 2) == 0b0001'0000);
static_assert(chunks_of(0x0101, 3) == 0xffff && joints_of(0xff, 3) == u64{0x7f} << 32 && joints_of(0xff, 0) == 0);
static_assert(chunks_at(joints_of(0xf0, 2), 4) == 0xf0 && chunks_at(joints_of(0xf0, 2), 3) == 0b1000);
static_assert(starts_block(joints_of(0xf0, 2), 4) && !starts_block(joints_of(0xf0, 2), 5));
static_assert(starts_block(joints_of(0xf0, 2), 8));

}  // namespace warpheap::inline WARPHEAP_BACKEND::chunks
