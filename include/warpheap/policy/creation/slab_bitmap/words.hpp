// SPDX-License-Identifier: Apache-2.0
// The packed words: what a slab is, what `free` needs to know of it, what a per-SM cache remembers,
// and what a reservation gives to the scan that follows it.
#pragma once

#include "../../../platform/simt.hpp"
#include "../../../structure/size_class.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace slab_bitmap_parts {

enum class slab_kind : u32 { free = 0, locked = 1, live = 2, run = 3 };

/// A slab's descriptor: its state in one word, so that every change is one atomic operation.
///
///    63        52 51    32 31 30 29    28 27 26 25    20 19          0
///   | generation |  bump  |F |U |  kind  |C |T | class  |    used     |
///
///   used   blocks reserved for callers, plus over-reservations, which are about to be released
///   class  size class; means something in kind live alone
///   kind   free: of no class, all bitmap words zero.   locked: one thread is changing its kind.
///          live: serves its class.                     run: part of a block larger than a slab.
///   U      unlisted: off its class's partial list, as it was at or over the high watermark
///   F      full: all its blocks were seen taken, and none has been freed since
///   C      index lock: one thread is clearing the slab's bit in an index (slab.I3)
///   T      the slab's bit in reclaimable is set (slab.I5)
///   bump   blocks reserved in this generation; overflows into it. Below the capacity, the blocks
///          from it on are probably free; the fetch_or decides
///   generation: how often the slab was taken, began anew as it was empty, was marked full or left
///          reclaimable: no word comes again soon, so a compare-exchange finds any change
///
///   slab.D1  used = bits set + reservations not claimed yet + bits cleared and not subtracted yet
///       + over-reservations in flight. Every change is a read-modify-write.
///   slab.D2  bits set in the slab's bitmap <= used: a bit is set after its reservation, and
///       cleared before it is subtracted.
///   slab.D3  a slab gets a class, or becomes a run, through locked, entered with nothing reserved
///       but over-reservations. A slab that had a class gets another one only after each of its
///       bitmap words was read as zero.
///   slab.D4  at rest: partial <=> live and not U; U => used > the low watermark; in the index of
///       free slabs <=> free.
///   slab.D5  F is set from a word in which the slab was live, after every bit was seen set, if the
///       word is still the same. Only a free clears bits. It changes the word afterwards, and takes
///       F away if it finds F there.
///   slab.D6  bits, not counts, own blocks: a free subtracts the bits it really cleared.
///   slab.D7  the words of a free slab, and of a live slab with used = 0, are zero, in the order of
///       their changes; a third thread may see used = 0 before the last zero. Tails are masked by
///       class, never stored.
///   slab.D8  over-reservations <= warp_lanes for each resident warp, so used < 2^20.
struct slab_state {
  static constexpr u64 used_mask = (u64{1} << 20) - 1;
  static constexpr u32 class_shift = 20;
  static constexpr u64 reclaimable_bit = u64{1} << 26;
  static constexpr u64 index_lock_bit = u64{1} << 27;
  static constexpr u32 kind_shift = 28;
  static constexpr u64 unlisted_bit = u64{1} << 30;
  static constexpr u64 full_bit = u64{1} << 31;
  static constexpr u32 bump_shift = 32;
  static constexpr u64 bump_unit = u64{1} << bump_shift;
  static constexpr u64 generation_unit = u64{1} << 52;

  u64 word = 0;

  /// All that is 32 bits' work: a GPU takes two instructions for 64.
  WARPHEAP_HOST_DEVICE constexpr u32 low() const { return static_cast<u32>(word); }
  WARPHEAP_HOST_DEVICE constexpr u32 used() const { return low() & used_mask; }
  WARPHEAP_HOST_DEVICE constexpr u32 size_class() const { return (low() >> class_shift) & 0x3f; }
  WARPHEAP_HOST_DEVICE constexpr slab_kind kind() const { return static_cast<slab_kind>((low() >> kind_shift) & 3); }
  WARPHEAP_HOST_DEVICE constexpr bool is_unlisted() const { return low() & unlisted_bit; }
  WARPHEAP_HOST_DEVICE constexpr bool is_full() const { return low() & full_bit; }
  WARPHEAP_HOST_DEVICE constexpr bool is_index_locked() const { return low() & index_lock_bit; }
  WARPHEAP_HOST_DEVICE constexpr bool is_in_reclaimable() const { return low() & reclaimable_bit; }
  WARPHEAP_HOST_DEVICE constexpr u32 bump() const { return static_cast<u32>(word >> bump_shift) & 0xf'ffff; }
  WARPHEAP_HOST_DEVICE constexpr bool is_live() const { return kind() == slab_kind::live; }
  WARPHEAP_HOST_DEVICE constexpr bool serves(u32 size_class_wanted) const {
    constexpr u32 both = (3u << kind_shift) | (0x3fu << class_shift);
    return ((low() ^ of(slab_kind::live, size_class_wanted).low()) & both) == 0;
  }
  /// Live, of the class, with blocks reserved and without flags: nothing is to be fixed up.
  WARPHEAP_HOST_DEVICE constexpr bool is_in_order(u32 its_class) const {
    constexpr u32 kind_unit = 1u << (kind_shift - class_shift);
    return (low() & ~static_cast<u32>(reclaimable_bit)) >> class_shift ==
               static_cast<u32>(slab_kind::live) * kind_unit + its_class &&
           used() != 0;
  }
  /// Free or empty: a thread may lock it and change its kind.
  WARPHEAP_HOST_DEVICE constexpr bool is_reclaimable() const {
    return kind() == slab_kind::free || (is_live() && used() == 0);
  }

  WARPHEAP_HOST_DEVICE constexpr slab_state without_full() const { return {word & ~full_bit}; }
  /// This word in the slab's next generation: nothing was reserved in it yet.
  WARPHEAP_HOST_DEVICE constexpr u64 next_generation() const {
    return (word & (bump_unit - 1)) | ((word & ~(generation_unit - 1)) + generation_unit);
  }

  WARPHEAP_HOST_DEVICE static constexpr slab_state of(slab_kind kind, u32 size_class) {
    return {(static_cast<u64>(kind) << kind_shift) | (u64{size_class} << class_shift)};
  }
  /// What a reservation of `blocks` adds.
  WARPHEAP_HOST_DEVICE static constexpr u64 reservation(u32 blocks) { return blocks * (bump_unit + 1); }
};

/// The fill levels of a slab of a class. The last sixteenth is for the warps on their way when the
/// slab is left. With `high` at 3/4, few slabs of a heap three quarters full were on the list
/// (1,036 us for 133). Without a gap to `low`, slabs with one free block came back at once.
struct slab_limits {
  u32 capacity;  ///< blocks
  u32 high;      ///< high watermark: at this many reserved blocks the slab leaves the partial list
  u32 low;       ///< low watermark: at or below this many it comes back

  WARPHEAP_HOST_DEVICE constexpr explicit slab_limits(u32 blocks)
      : capacity{blocks}, high{blocks - blocks / 16}, low{blocks - blocks / 8 - 1} {}
};

/// What `free` needs to know of a slab, in a word that seldom changes.
///
///    63      39 38     32 31 30          0
///   | reciprocal | class + 1 |R |   bytes    |   R clear: blocks of `bytes` bytes; 0: no class yet
///   |           0            |R |   length   |   R set: first slab of a run of `length` slabs;
///                                             0: the slab is absent (presence.hpp)
///
/// The upper half is m = 2^32 / bytes and less than 2^8 more. So for block k, at k * bytes < 2^21,
/// the upper half of the product with m is k. Where no block starts, it is of a block elsewhere.
struct slab_header {
  static constexpr u32 run_bit = 1u << 31, no_block = ~0u;

  u64 word = 0;

  WARPHEAP_HOST_DEVICE static constexpr slab_header of_class(u32 size_class) {
    u32 const quotient = class_units_reciprocal(size_class) >> (class_unit_log2(size_class) - 1);
    return {u64{(quotient | 127) + 1 + size_class + 1} << 32 | class_bytes(size_class)};
  }
  WARPHEAP_HOST_DEVICE static constexpr slab_header of_run(u32 slabs) { return {run_bit | slabs}; }

  WARPHEAP_HOST_DEVICE static constexpr slab_header absent() { return of_run(0); }

  WARPHEAP_HOST_DEVICE constexpr bool is_none() const { return word == 0; }
  WARPHEAP_HOST_DEVICE constexpr bool is_absent() const { return word == run_bit; }
  WARPHEAP_HOST_DEVICE constexpr bool is_run() const { return word & run_bit; }
  /// Slabs of the run that starts here.
  WARPHEAP_HOST_DEVICE constexpr u32 length() const { return static_cast<u32>(word) & ~run_bit; }
  /// Bytes of a block; 0 or less if there are none.
  WARPHEAP_HOST_DEVICE constexpr i32 block_bytes() const { return static_cast<i32>(word); }
  WARPHEAP_HOST_DEVICE constexpr u32 size_class() const { return class_field() - 1; }
  /// The class + 1; 0 if there is none.
  WARPHEAP_HOST_DEVICE constexpr u32 class_field() const { return static_cast<u32>(word >> 32) & 127; }
  WARPHEAP_HOST_DEVICE constexpr bool is_of(u32 its_class) const { return class_field() == its_class + 1; }
  /// The lower half, which tells all of a header; and the header that has it.
  WARPHEAP_HOST_DEVICE constexpr u32 low() const { return static_cast<u32>(word); }
  WARPHEAP_HOST_DEVICE static constexpr slab_header of_low(u32 low) {
    return low == 0 || (low & run_bit) != 0 ? slab_header{low} : of_class(size_class_of(low));
  }
  /// Index of the block that starts at `offset` bytes in the slab; no_block if none does.
  WARPHEAP_HOST_DEVICE constexpr u32 index_at(u32 offset) const {
    return starts(index_of(offset), offset) ? index_of(offset) : no_block;
  }
  /// Index of the block that starts at `offset`, if starts() says so.
  WARPHEAP_HOST_DEVICE constexpr u32 index_of(u32 offset) const {
    return multiply_high(static_cast<u32>(word >> 32), offset);
  }
  WARPHEAP_HOST_DEVICE constexpr bool starts(u32 index, u32 offset) const {
    return index * static_cast<u32>(word) == offset;
  }
};

/// What a per-SM cache remembers for a class: the active slab, and the demand since it became
/// active. A thread that uses the slab asks it.
///
///    63         32 31        0
///   |   demand   |   active   |   demand: blocks asked for in a slab of its own, modulo 2^32
///                                 active: slab + 1; 0: none
struct sm_cache_entry {
  u64 word = 0;

  WARPHEAP_HOST_DEVICE constexpr u32 active() const { return static_cast<u32>(word); }
  WARPHEAP_HOST_DEVICE constexpr u32 demand() const { return static_cast<u32>(word >> 32); }
  WARPHEAP_HOST_DEVICE static constexpr u64 demand_of(u32 blocks) { return u64{blocks} << 32; }
  WARPHEAP_HOST_DEVICE static constexpr sm_cache_entry of(u32 slab) { return {u64{slab} + 1}; }
};

/// What a class wants. Advisory.
///
///    63         32 31         0
///   |   demand   |  openers   |   demand: blocks that found no partial slab, modulo 2^32
///                                 openers: threads that are opening a slab for them
struct slab_supply {
  u64 word = 0;

  WARPHEAP_HOST_DEVICE constexpr u32 openers() const { return static_cast<u32>(word); }
  WARPHEAP_HOST_DEVICE constexpr u32 demand() const { return static_cast<u32>(word >> 32); }
  WARPHEAP_HOST_DEVICE static constexpr u64 demand_of(u32 blocks) { return u64{blocks} << 32; }
};

/// Blocks of one slab reserved for a caller, which now looks for them in its bitmap.
///
///   63 62 61    56 55 54   32 31      0
///  | 0 | L | blocks | N | place |  slab  |   L: it reached its high watermark by this reservation
///                                            N: `place` is a bump cursor below the capacity
/// With warps of 64 lanes, `blocks` has a bit more and `place` one less.
class slab_reservation {
  static constexpr u32 place_shift = 32, blocks_shift = warp_lanes == 32 ? 56 : 55, place_bits = blocks_shift - 33;

 public:
  /// `place` of a reservation that named no block.
  static constexpr u32 nowhere = (1u << place_bits) - 1;

  slab_reservation() = default;
  WARPHEAP_HOST_DEVICE explicit slab_reservation(u64 word) : word_{word} {}
  WARPHEAP_HOST_DEVICE slab_reservation(u32 slab, u32 blocks, u32 place)
      : word_{u64{blocks} << blocks_shift | u64{place} << place_shift | slab} {}

  WARPHEAP_HOST_DEVICE u64 word() const { return word_; }
  WARPHEAP_HOST_DEVICE u32 slab() const { return static_cast<u32>(word_); }
  /// Reserved and not yet claimed, at most warp_lanes; 0: there was no room.
  WARPHEAP_HOST_DEVICE u32 blocks() const { return static_cast<u32>(word_ >> blocks_shift) & (2 * warp_lanes - 1); }
  WARPHEAP_HOST_DEVICE u32 place() const { return static_cast<u32>(word_ >> place_shift) & nowhere; }
  WARPHEAP_HOST_DEVICE bool is_new() const { return (word_ & new_bit) != 0; }
  WARPHEAP_HOST_DEVICE bool reaches_high() const { return (word_ & reaches_high_bit) != 0; }

  /// What the reservation's old word says of the slab.
  struct facts {
    bool is_new = false, reaches_high = false;
  };
  WARPHEAP_HOST_DEVICE slab_reservation with(facts seen) const {
    slab_reservation same = *this;
    same.word_ |= (seen.is_new ? new_bit : 0) | (seen.reaches_high ? reaches_high_bit : 0);
    return same;
  }

 private:
  static constexpr u64 new_bit = u64{1} << (blocks_shift - 1), reaches_high_bit = u64{1} << 62;

  u64 word_ = 0;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::slab_bitmap_parts
