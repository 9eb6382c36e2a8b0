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
//   A1  used >= taken bits of the slab: chunks are promised before they are taken, and cleared
//       before they are subtracted.
//   A2  every subtraction raises the version, is a release, and settles what it leaves.
//   A3  a slab is locked only with used = 0. By A1 and A2 none of its chunks is taken then, and no
//       clear is on its way: the thread that locks it (acquire) has seen all of them. So the slab
//       may serve another kind at once.
//   A4  a note of the state's version is true. The bits that were clear at the look were no whole
//       block, and those cleared since belong to frees that have not returned. A note needs no
//       clearing, because the next subtraction outdates it (A2). A slab that had a chunk in use at
//       the look gets no other life before that subtraction.
//   A5  head and length change only while the slab is live; a locked slab has none.
//   A6  transients <= 8 chunks a resident thread, so used < 2^24.
#pragma once

#include "sizes.hpp"

namespace warpheap::inline WARPHEAP_BACKEND::chunks {

enum class slab_phase : u32 { none = 0, free = 1, live = 2, locked = 3 };

/// A value of the word; pure, so that every decision can be tested without threads.
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
  /// The state of this slab locked: what only a live slab has is cleared (A5), and transients and
  /// version stay.
  WARPHEAP_HOST_DEVICE constexpr slab_state locked() const {
    return {(word & used_mask) | (word & ~(version_unit - 1)) | of(slab_phase::locked)};
  }
  /// What leaving room for `chunks` adds to the word (A2).
  WARPHEAP_HOST_DEVICE static constexpr u64 leaving(u32 chunks) { return version_unit - chunks; }

  /// Whether `note` says that at this version there is no room for 2^length chunks (A4).
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

}  // namespace warpheap::inline WARPHEAP_BACKEND::chunks
