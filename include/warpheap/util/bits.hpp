// SPDX-License-Identifier: Apache-2.0
// Bit arithmetic on 32- and 64-bit words: the vocabulary of bitmaps, lane masks and size classes.
//
// Pure functions, usable in constant expressions, one to a few instructions each; none loops over
// bits. A CPU takes the compiler's built-ins, a GPU its intrinsics. Constant expressions in device
// code can take neither (NVRTC knows no built-ins for bits, and intrinsics do not fold), so there
// all functions build on a count by halves.
#pragma once

#include "../platform/types.hpp"

namespace warpheap {

namespace folded {

/// Set bits of `word`, by adding neighbours: pairs, nibbles, bytes.
WARPHEAP_HOST_DEVICE constexpr u32 popcount(u64 word) {
  word -= (word >> 1) & 0x5555'5555'5555'5555u;
  word = (word & 0x3333'3333'3333'3333u) + ((word >> 2) & 0x3333'3333'3333'3333u);
  word = (word + (word >> 4)) & 0x0f0f'0f0f'0f0f'0f0fu;
  return static_cast<u32>((word * 0x0101'0101'0101'0101u) >> 56);
}

WARPHEAP_HOST_DEVICE constexpr u32 lowest_bit(u64 word) { return popcount((word & -word) - 1); }

WARPHEAP_HOST_DEVICE constexpr u32 highest_bit(u64 word) {
  for (u32 shift = 1; shift < 64; shift *= 2) word |= word >> shift;
  return popcount(word) - 1;
}

}  // namespace folded

#if defined(__CUDA_ARCH__)
#define WARPHEAP_BIT_FUNCTION(name, on_gpu, on_cpu) \
  return __builtin_is_constant_evaluated() ? folded::name(word) : static_cast<u32>(on_gpu)
#else
#define WARPHEAP_BIT_FUNCTION(name, on_gpu, on_cpu) return static_cast<u32>(on_cpu)
#endif

WARPHEAP_HOST_DEVICE constexpr u32 popcount(u32 word) {
  WARPHEAP_BIT_FUNCTION(popcount, __popc(word), __builtin_popcount(word));
}
WARPHEAP_HOST_DEVICE constexpr u32 popcount(u64 word) {
  WARPHEAP_BIT_FUNCTION(popcount, __popcll(word), __builtin_popcountll(word));
}

/// Index of the lowest set bit; `word` is not 0.
WARPHEAP_HOST_DEVICE constexpr u32 lowest_bit(u32 word) {
  WARPHEAP_BIT_FUNCTION(lowest_bit, __ffs(static_cast<i32>(word)) - 1, __builtin_ctz(word));
}
WARPHEAP_HOST_DEVICE constexpr u32 lowest_bit(u64 word) {
  WARPHEAP_BIT_FUNCTION(lowest_bit, __ffsll(static_cast<i64>(word)) - 1, __builtin_ctzll(word));
}

/// Index of the highest set bit; `word` is not 0.
WARPHEAP_HOST_DEVICE constexpr u32 highest_bit(u32 word) {
  // One instruction and a subtraction, of which a sum with a constant takes none.
  WARPHEAP_BIT_FUNCTION(highest_bit, 32 - __ffs(static_cast<i32>(__brev(word))), 31 - __builtin_clz(word));
}
WARPHEAP_HOST_DEVICE constexpr u32 highest_bit(u64 word) {
  WARPHEAP_BIT_FUNCTION(highest_bit, 63 - __clzll(static_cast<i64>(word)), 63 - __builtin_clzll(word));
}

#undef WARPHEAP_BIT_FUNCTION

/// The `bits` lowest bits set, `bits` in [0, 64].
WARPHEAP_HOST_DEVICE constexpr u64 low_mask(u32 bits) { return bits < 64 ? (u64{1} << bits) - 1 : ~u64{0}; }

/// The `bits` lowest bits set, `bits` in [0, 32].
WARPHEAP_HOST_DEVICE constexpr u32 low_mask32(u32 bits) { return static_cast<u32>((u64{1} << bits) - 1); }

/// Every bit of a word.
inline constexpr u32 full_word = ~u32{0};

/// The lanes below `lane`, which is in [0, warp_lanes].
WARPHEAP_HOST_DEVICE constexpr lane_mask lanes_before(u32 lane) {
  return static_cast<lane_mask>(warp_lanes == 32 ? low_mask32(lane) : low_mask(lane));
}

/// Index of the set bit that has `k` set bits below it; `k` < popcount(word).
WARPHEAP_HOST_DEVICE constexpr u32 nth_bit(u32 word, u32 k) {
  u32 position = 0;
  for (u32 half = 16; half != 0; half /= 2) {
    auto const below = popcount((word >> position) & low_mask32(half));
    if (k >= below) {
      k -= below;
      position += half;
    }
  }
  return position;
}
WARPHEAP_HOST_DEVICE constexpr u32 nth_bit(u64 word, u32 k) {
  auto const low = static_cast<u32>(word), high = static_cast<u32>(word >> 32);
  auto const below = popcount(low);
  // One search in the half that was selected: with two branches, a warp would execute both.
  bool const in_low = k < below;
  return (in_low ? 0 : 32) + nth_bit(in_low ? low : high, in_low ? k : k - below);
}

/// The upper half of the product.
WARPHEAP_HOST_DEVICE constexpr u32 multiply_high(u32 a, u32 b) {
#if defined(__CUDA_ARCH__)
  if (!__builtin_is_constant_evaluated()) return __umulhi(a, b);
#endif
  return static_cast<u32>((u64{a} * b) >> 32);
}

/// `word` turned left by `count` modulo 64 bits.
WARPHEAP_HOST_DEVICE constexpr u64 rotate_left(u64 word, u32 count) {
  return word << (count % 64) | word >> ((0 - count) % 64);
}

/// The `count` lowest set bits of `word`, `count` at least 1; all of `word` if it has no more.
WARPHEAP_HOST_DEVICE constexpr u64 lowest_bits(u64 word, u32 count) {
  if (count == 1) return word & (0 - word);  // most often, and far less work
  if (count >= popcount(word)) return word;
  return word & low_mask(nth_bit(word, count));
}

/// Lowest position of `length` consecutive set bits, `length` at least 1; 64 if there is none.
WARPHEAP_HOST_DEVICE constexpr u32 find_run(u64 word, u32 length) {
  if (length > 64) return 64;
  // Bit i of `word` says that `covered` set bits start at i; each turn at most doubles what it
  // covers.
  for (u32 covered = 1; covered < length;) {
    auto const step = covered < length - covered ? covered : length - covered;
    word &= word >> step;
    covered += step;
  }
  return word != 0 ? lowest_bit(word) : 64;
}

WARPHEAP_HOST_DEVICE constexpr bool is_power_of_two(u64 value) { return value != 0 && (value & (value - 1)) == 0; }

/// Largest e with 2^e <= value; `value` is not 0.
WARPHEAP_HOST_DEVICE constexpr u32 log2_floor(u64 value) { return highest_bit(value); }

/// Smallest e with 2^e >= value; `value` is not 0.
WARPHEAP_HOST_DEVICE constexpr u32 log2_ceil(u64 value) { return value > 1 ? highest_bit(value - 1) + 1 : 0; }

/// Smallest multiple of `alignment`, a power of two, that is >= value; the result must fit 64 bits.
WARPHEAP_HOST_DEVICE constexpr u64 align_up(u64 value, u64 alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

/// Largest multiple of `alignment`, a power of two, that is <= value.
WARPHEAP_HOST_DEVICE constexpr u64 align_down(u64 value, u64 alignment) { return value & ~(alignment - 1); }

/// value / divisor rounded up, for any value.
WARPHEAP_HOST_DEVICE constexpr u64 div_ceil(u64 value, u64 divisor) {
  return value / divisor + (value % divisor != 0 ? 1 : 0);
}

}  // namespace warpheap
