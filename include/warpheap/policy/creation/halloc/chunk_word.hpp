// Thirty-two chunks of a slab in one 64-bit word: which are taken, and which belong to one block.
//
//    63             32 31              0
//   |  joined, kind    |     taken      |
//
// Bit i: chunk i is taken. Bit 32 + i: chunks i and i + 1 are taken by the same block.
//
// Blocks have 8 chunks at most and lie at multiples of their length, so chunks 7, 15, 23 and 31 are
// never joined to the next one. Their four bits name the kind of the slab's chunks instead: bit 39
// + 8k for kind k.
//
//   C1  a taken bit has one owner at most: the thread whose operation found it clear, until it is
//       cleared.
//   C2  at every instant the joined bits are those of whole blocks: a block of n chunks has n - 1
//       of them, which lead from its first chunk to its last. Several chunks are taken by one
//       compare-exchange together with their joined bits, and a block is cleared as a whole by one
//       compare-exchange of the word that it was seen in.
//   C3  blocks lie at multiples of their length, so none reaches into the next word.
//   C4  words change by read-modify-write alone, and only chunks that exist are ever set.
//   C5  a word without a taken chunk is 0; any other has the kind bit of its slab's kind and no
//       other kind bit. By A1 and A3 (slab_state.hpp) all words of a slab are 0 when it changes its
//       kind.
//
// So one look at a word says whether a block starts at a chunk of a slab of some kind. A
// compare-exchange of that word then frees this block or nothing, however late the free is and
// whatever became of the slab meanwhile.
//
// Pure functions. Source: a bit a chunk, and blocks of several chunks: Adinetz and Pleiter 2014.
// The joined bits are ours.
#pragma once

#include "sizes.hpp"

namespace warpheap::inline WARPHEAP_BACKEND::chunks {

inline constexpr u32 word_chunks = 32;
inline constexpr u32 joinable = 0x7f7f'7f7f;  ///< chunks that may be joined to the next

WARPHEAP_HOST_DEVICE constexpr u32 taken(u64 word) { return static_cast<u32>(word); }
WARPHEAP_HOST_DEVICE constexpr u32 joined(u64 word) { return static_cast<u32>(word >> 32) & joinable; }
/// The bit of a kind; and all kind bits of a word.
WARPHEAP_HOST_DEVICE constexpr u64 kind_bit(u32 kind) { return u64{1} << (39 + 8 * kind); }
WARPHEAP_HOST_DEVICE constexpr u64 kind_bits(u64 word) { return word & u64{~joinable} << 32; }

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

/// The chunks of the blocks of 2^length chunks that start at `starts`.
WARPHEAP_HOST_DEVICE constexpr u32 chunks_of(u32 starts, u32 length) {
  return starts * static_cast<u32>(low_mask(1u << length));
}

/// The joined bits of `chunks`, which are whole blocks of 2^length chunks.
WARPHEAP_HOST_DEVICE constexpr u64 joints_of(u32 chunks, u32 length) {
  u32 const pattern = length == 0 ? 0 : length == 1 ? 0x5555'5555u : length == 2 ? 0x7777'7777u : 0x7f7f'7f7fu;
  return u64{chunks & pattern} << 32;
}

/// Those of `starts` at which a block of a slab of the kind starts.
WARPHEAP_HOST_DEVICE constexpr u32 live_starts(u64 word, u32 starts, u32 kind) {
  return kind_bits(word) == kind_bit(kind) ? starts & taken(word) & ~(joined(word) << 1) : 0;
}
/// The chunks of the blocks that start at `starts`, if a block starts at each of them.
WARPHEAP_HOST_DEVICE constexpr u32 chunks_at(u64 word, u32 starts) {
  // A block has eight chunks at most: three doublings along the joined bits find them all.
  u32 chunks = starts, next = joined(word) << 1;
  chunks |= next & chunks << 1;
  next &= next << 1;
  chunks |= next & chunks << 2;
  next &= next << 2;
  return chunks | (next & chunks << 4);
}

/// The word with `chunks`, all free, taken as blocks of 2^length chunks (C2, C5).
WARPHEAP_HOST_DEVICE constexpr u64 with_blocks(u64 word, u32 chunks, u32 length, u32 kind) {
  return word | chunks | joints_of(chunks, length) | kind_bit(kind);
}
/// The word with `chunks`, which are whole blocks, freed (C2, C5).
WARPHEAP_HOST_DEVICE constexpr u64 without_blocks(u64 word, u32 chunks) {
  u64 const left = word & ~(u64{chunks & joinable} << 32 | chunks);
  return taken(left) != 0 ? left : 0;
}

static_assert(starts_in(0b1111'0110, 1) == 0b0101'0000 && starts_in(0b1111'0110, 2) == 0b0001'0000);
static_assert(chunks_of(0x0101, 3) == 0xffff && joints_of(0xff, 3) == u64{0x7f} << 32 && joints_of(0xff, 0) == 0);
static_assert(chunks_at(joints_of(0xf0, 2), 1u << 4) == 0xf0 && chunks_at(joints_of(0xf0, 2), 0x108) == 0x108);
static_assert(chunks_at(joints_of(0xffff, 3), 0x0101) == 0xffff && chunks_at(joints_of(0x3, 1), 0x5) == 0x7);
static_assert(live_starts(with_blocks(0, 0xf0, 2, 1), ~0u, 1) == 1u << 4 && live_starts(~u64{0}, ~0u, 1) == 0);
static_assert(without_blocks(with_blocks(0, 0xf0, 2, 1), 0xf0) == 0);
static_assert(without_blocks(with_blocks(3, 0xf0, 2, 1), 0xf0) == (3 | kind_bit(1)));

}  // namespace warpheap::inline WARPHEAP_BACKEND::chunks
