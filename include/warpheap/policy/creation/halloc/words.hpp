// SPDX-License-Identifier: Apache-2.0
// The packed words of a heap: thirty-two chunks of a slab, a slab's state and the note beside it,
// and what a row says of its head. Pure functions, so that every decision can be tested without
// threads.
#pragma once

#include "sizes.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace halloc_parts {

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
//   halloc.C1  a taken bit has one owner at most: the thread whose operation found it clear, until
//       it is cleared.
//   halloc.C2  at every instant the joined bits are those of whole blocks: a block of n chunks has
//       n - 1 of them, which lead from its first chunk to its last. Several chunks are taken by one
//       compare-exchange together with their joined bits, and a block is cleared as a whole by one
//       compare-exchange of the word that it was seen in.
//   halloc.C3  blocks lie at multiples of their length, so none reaches into the next word.
//   halloc.C4  words change by read-modify-write alone, and only chunks that exist are ever set.
//   halloc.C5  a word without a taken chunk is 0; any other has the kind bit of its slab's kind and
//       no other kind bit. By halloc.A1 and halloc.A3 all words of a slab are 0 when it changes its
//       kind.
//
// So one look at a word says whether a block starts at a chunk of a slab of some kind. A
// compare-exchange of that word then frees this block or nothing, however late the free is and
// whatever became of the slab meanwhile.
//
// Source: a bit a chunk, and blocks of several chunks: Adinetz and Pleiter 2014. The joined bits
// are ours.

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

/// The joined bits of `chunks`, which are whole blocks of 2^length chunks: all but the last chunk
/// of each.
WARPHEAP_HOST_DEVICE constexpr u64 joints_of(u32 chunks, u32 length) {
  u32 const of_more = length == 2 ? 0x7777'7777u : 0x7f7f'7f7fu, of_some = length == 1 ? 0x5555'5555u : of_more;
  return u64{chunks & (length == 0 ? 0 : of_some)} << 32;
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

/// The word with `chunks`, all free, taken as blocks of 2^length chunks (halloc.C2, halloc.C5).
WARPHEAP_HOST_DEVICE constexpr u64 with_blocks(u64 word, u32 chunks, u32 length, u32 kind) {
  return word | chunks | joints_of(chunks, length) | kind_bit(kind);
}
/// The word with `chunks`, which are whole blocks, freed (halloc.C2, halloc.C5).
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

// One slab's state in one 64-bit word, so that every change is one atomic operation; and a note
// beside it.
//
//    63            31    30     29 28   27 26   25 24   23     0
//   |    version    |  head  | length |  kind  | phase  |  used   |     state
//   |    version    |         0                         | no room |     note
//
//   used      chunks promised to callers, and transients: promises that are about to be given back
//   phase     none: TBuddy's memory. free: without a chunk in use, and in the set of free slabs.
//             live. locked: one thread is at work on it
//   kind      of the chunks of a live slab; length: log2 of the chunks in the blocks for which it
//             was a head last
//   head      a row takes blocks from it, or has it ready as a next head; it is in no set
//   version   how often room was left, modulo 2^33. Nothing else raises it, so between two looks at
//             equal versions no room was left
//   no room   bit l: a search that began its look at all words at this version saw no block of 2^l
//             chunks
//
//   halloc.A1  used >= taken bits of the slab: chunks are promised before they are taken, and
//       cleared before they are subtracted.
//   halloc.A2  every subtraction raises the version, is a release, and settles what it leaves.
//   halloc.A3  a slab is locked only with used = 0. By halloc.A1 and halloc.A2 none of its chunks
//       is taken then, and no clear is on its way: the thread that locks it (acquire) has seen all
//       of them. So the slab may serve another kind at once.
//   halloc.A4  a note of the state's version is true. The bits that were clear at the look were no
//       whole block, and those cleared since belong to frees that have not returned. A note needs
//       no clearing, because the next subtraction outdates it (halloc.A2). A slab that had a chunk
//       in use at the look gets no other life before that subtraction.
//   halloc.A5  head and length change only while the slab is live; a locked slab has none.
//   halloc.A6  transients <= 8 chunks a resident thread, so used < 2^24.

enum class slab_phase : u32 { none = 0, free = 1, live = 2, locked = 3 };

/// A value of the state.
struct slab_state {
  u64 word = 0;

  static constexpr u64 used_mask = (u64{1} << 24) - 1;
  static constexpr u32 phase_shift = 24, kind_shift = 26, length_shift = 28, version_shift = 31;
  static constexpr u64 head_bit = u64{1} << 30, version_unit = u64{1} << version_shift;

  WARPHEAP_HOST_DEVICE constexpr u32 used() const { return static_cast<u32>(word & used_mask); }
  WARPHEAP_HOST_DEVICE constexpr slab_phase phase() const { return static_cast<slab_phase>(word >> phase_shift & 3); }
  WARPHEAP_HOST_DEVICE constexpr u32 kind() const { return static_cast<u32>(word >> kind_shift & 3); }
  WARPHEAP_HOST_DEVICE constexpr u32 length() const { return static_cast<u32>(word >> length_shift & 3); }
  WARPHEAP_HOST_DEVICE constexpr u32 size() const { return size_of(kind(), length()); }
  WARPHEAP_HOST_DEVICE constexpr bool head() const { return (word & head_bit) != 0; }
  WARPHEAP_HOST_DEVICE constexpr u64 version() const { return word >> version_shift; }

  WARPHEAP_HOST_DEVICE constexpr bool live() const { return phase() == slab_phase::live; }
  WARPHEAP_HOST_DEVICE constexpr bool serves(u32 wanted_kind) const { return live() && kind() == wanted_kind; }
  WARPHEAP_HOST_DEVICE constexpr bool empty() const { return live() && used() == 0; }
  WARPHEAP_HOST_DEVICE constexpr bool unused() const { return phase() == slab_phase::free || empty(); }

  /// Blocks of 2^length chunks that may still be promised in a slab of `capacity` chunks.
  WARPHEAP_HOST_DEVICE constexpr u32 room(u32 capacity, u32 length) const {
    return used() < capacity ? (capacity - used()) >> length : 0;
  }

  WARPHEAP_HOST_DEVICE static constexpr u64 of(slab_phase phase) { return static_cast<u64>(phase) << phase_shift; }
  WARPHEAP_HOST_DEVICE static constexpr u64 live_as(u32 size) {
    return of(slab_phase::live) | u64{kind_of(size)} << kind_shift | u64{length_of(size)} << length_shift;
  }
  /// The state of this slab locked: what only a live slab has is cleared (halloc.A5), and
  /// transients and version stay.
  WARPHEAP_HOST_DEVICE constexpr slab_state locked() const {
    return {(word & used_mask) | (word & ~(version_unit - 1)) | of(slab_phase::locked)};
  }
  /// What leaving room for `chunks` adds to the word (halloc.A2).
  WARPHEAP_HOST_DEVICE static constexpr u64 leaving(u32 chunks) { return version_unit - chunks; }

  /// Whether `note` says that at this version there is no room for 2^length chunks (halloc.A4).
  WARPHEAP_HOST_DEVICE constexpr bool is_full_by(u64 note, u32 length) const {
    return note >> version_shift == version() && (note >> length & 1) != 0;
  }
  /// The note that there was no room for 2^length chunks, nor for more. Keeps what `note` says of
  /// the same version.
  WARPHEAP_HOST_DEVICE constexpr u64 noting_full(u64 note, u32 length) const {
    u64 const kept = note >> version_shift == version() ? note & 15 : 0;
    return version() << version_shift | kept | (15u << length & 15u);
  }
};

static_assert(slab_state{slab_state::live_as(13) + 5}.size() == 13 &&
              slab_state{slab_state::live_as(13) + 5}.used() == 5);
static_assert(slab_state{slab_state{7}.word + slab_state::leaving(7)}.word == slab_state::version_unit);
static_assert(slab_state{3}.room(8, 2) == 1 && slab_state{3}.noting_full(0b1000, 2) == 0b1100);

// What a row knows of its head, in a word that a request changes by one addition.
//
//    63                   24 23          0
//   |        counter        |  head + 1   |     0 in the low part: no head

inline constexpr u32 head_bits = 24;
WARPHEAP_HOST_DEVICE constexpr u32 head_of(u64 row) { return static_cast<u32>(row & 0xff'ffff); }
WARPHEAP_HOST_DEVICE constexpr u32 number_of(u64 row) { return static_cast<u32>(row >> head_bits); }

// The lock of that row.
//
//    63       33  32  31                  0
//   |     0     |lock|  more next heads    |     how many the row wants beyond the first
//
// The lock is set while a thread replaces the head.

inline constexpr u64 row_lock = u64{1} << 32;

}}}  // namespace warpheap::WARPHEAP_BACKEND::halloc_parts
