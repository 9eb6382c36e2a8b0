// One slab's state in one 64-bit word, so that every change is one atomic operation.
//
//    63    52 51    32 31 30 29    28 27 26    20 19          0
//   |  life  |  ever  |F |S |  kind  |C | class  |    used     |
//
//   used   blocks promised to callers, plus transients: promises that are about to be given back
//   class  size class; means something in kinds live and locked
//   kind   free: of no class, all bitmap words zero.   locked: one thread is changing its kind.
//          live: serves its class.                     run: part of a block larger than a slab.
//   S      off its class's index of slabs with room: was at or over the soft limit
//   F      full: all its blocks were seen taken, and none has been freed since
//   C      one thread is clearing the slab's bit in an index (I3)
//   ever   blocks promised since `life` began; overflows into it; only a guess where free blocks are
//   life   counts how often the slab was taken, began anew when it was empty, or was marked full: no word comes
//          again soon, so a compare-exchange from one that was seen finds whether anything has changed
//
//   D1  used = bits set + promises not claimed yet + bits cleared and not subtracted yet +
//       transients in flight. Every change is a read-modify-write, and every subtraction settles.
//   D2  bits set in the slab's bitmap <= used: a bit is set after its promise, and cleared before
//       it is subtracted.
//   D3  class and kind change only through locked, which is entered with nothing promised.
//   D4  at rest: listed <=> live and not S; S => used > the relist limit; in the index of free
//       slabs <=> free.
//   D5  F is set from a word in which the slab was live, after every bit was seen set, if the word
//       is still the same. Only a free clears bits. It changes the word afterwards, and takes F
//       away if it finds F there.
//   D6  bits, not counts, own blocks: a free subtracts the bits it really cleared.
//   D7  the words of a free slab, and of a live slab with used = 0, are zero. Tails are masked by
//       class, never stored.
//   D8  transients <= 32 for each resident warp, so used < 2^20.
#pragma once

#include "../../../structure/size_class.hpp"

namespace warpheap {

enum class slab_kind : u32 { free = 0, locked = 1, live = 2, run = 3 };

/// A value of the descriptor word; pure, so that every decision can be tested without threads.
struct slab_state {
  static constexpr u64 used_mask = (u64{1} << 20) - 1;
  static constexpr u32 class_shift = 20;
  static constexpr u64 clearing_bit = u64{1} << 27;
  static constexpr u32 kind_shift = 28;
  static constexpr u64 soft_bit = u64{1} << 30;
  static constexpr u64 full_bit = u64{1} << 31;
  static constexpr u32 ever_shift = 32;
  static constexpr u64 ever_unit = u64{1} << ever_shift;
  static constexpr u64 life_unit = u64{1} << 52;

  u64 word = 0;

  WARPHEAP_HOST_DEVICE constexpr u32 used() const { return static_cast<u32>(word & used_mask); }
  WARPHEAP_HOST_DEVICE constexpr u32 size_class() const { return (word >> class_shift) & 0x7f; }
  WARPHEAP_HOST_DEVICE constexpr slab_kind kind() const { return static_cast<slab_kind>((word >> kind_shift) & 3); }
  WARPHEAP_HOST_DEVICE constexpr bool soft() const { return word & soft_bit; }
  WARPHEAP_HOST_DEVICE constexpr bool full() const { return word & full_bit; }
  WARPHEAP_HOST_DEVICE constexpr bool clearing() const { return word & clearing_bit; }
  WARPHEAP_HOST_DEVICE constexpr u32 ever() const { return static_cast<u32>(word >> ever_shift) & 0xf'ffff; }

  WARPHEAP_HOST_DEVICE constexpr bool live() const { return kind() == slab_kind::live; }
  WARPHEAP_HOST_DEVICE constexpr bool serves(u32 size_class_wanted) const {
    constexpr u64 both = (u64{3} << kind_shift) | (u64{0x7f} << class_shift);
    return (word & both) == of(slab_kind::live, size_class_wanted).word;
  }
  /// Live, of the class, promised to somebody and without flags: nothing is to be settled.
  WARPHEAP_HOST_DEVICE constexpr bool is_settled(u32 its_class) const {
    constexpr u32 kind_unit = 1u << (kind_shift - class_shift);
    return static_cast<u32>(word) >> class_shift == (static_cast<u32>(slab_kind::live) * kind_unit | its_class) &&
           used() != 0;
  }
  /// Free or empty: a thread may lock it and change its kind.
  WARPHEAP_HOST_DEVICE constexpr bool takeable() const { return kind() == slab_kind::free || (live() && used() == 0); }

  /// The word without F.
  WARPHEAP_HOST_DEVICE constexpr slab_state without_full() const { return {word & ~full_bit}; }

  /// This word in the slab's next life, in which nothing was promised yet.
  WARPHEAP_HOST_DEVICE constexpr u64 reborn() const {
    return (word & (ever_unit - 1)) | ((word & ~(life_unit - 1)) + life_unit);
  }

  WARPHEAP_HOST_DEVICE static constexpr slab_state of(slab_kind kind, u32 size_class) {
    return {(static_cast<u64>(kind) << kind_shift) | (u64{size_class} << class_shift)};
  }
  /// What a promise of `blocks` adds.
  WARPHEAP_HOST_DEVICE static constexpr u64 promise(u32 blocks) { return blocks * (ever_unit + 1); }
};

static_assert(slab_state{slab_state::of(slab_kind::live, 63).word + 1}.is_settled(63));
static_assert(!slab_state{slab_state::of(slab_kind::live, 63).word}.is_settled(63));
static_assert(!slab_state{slab_state::of(slab_kind::locked, 63).word + 1}.is_settled(63));
static_assert(!slab_state{slab_state::of(slab_kind::live, 62).word + 1}.is_settled(63));
static_assert(!slab_state{(slab_state::of(slab_kind::live, 63).word | slab_state::full_bit) + 1}.is_settled(63));

/// The fill levels of a slab of one class.
struct slab_limits {
  u32 capacity;  ///< blocks
  u32 roomy;     ///< below this many promised blocks it is worth going over to the slab
  u32 soft;      ///< at this many promised blocks the slab leaves the index
  u32 relist;    ///< at or below this many it comes back

  /// roomy 3/4, soft 15/16, relist 7/8 of the capacity: relist < soft <= capacity. The last sixteenth is
  /// for the warps that are on their way when the slab is left; a search finds it when memory is
  /// scarce. With 1/2, 3/4 and 5/8 hardly a slab was listed of a heap that was three quarters full
  /// (1,036 us for 133). Without the gap between soft and relist slabs with one free block were handed
  /// out again and again.
  WARPHEAP_HOST_DEVICE constexpr explicit slab_limits(u32 capacity)
      : capacity{capacity},
        roomy{capacity - capacity / 4},
        soft{capacity - capacity / 16},
        relist{capacity - capacity / 8 - 1} {}
};

static_assert(slab_limits{1}.soft == 1 && slab_limits{1}.relist == 0);
static_assert(slab_limits{2}.relist < 2 && slab_limits{4}.relist < slab_limits{4}.soft && slab_limits{8}.relist == 6);
static_assert(slab_limits{5}.relist < slab_limits{5}.soft && slab_limits{64}.soft == 60);

}  // namespace warpheap
