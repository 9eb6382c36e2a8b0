// SPDX-License-Identifier: Apache-2.0
// The sizes that blocks of memory come in: 16, 32, 48, 64, then four to each doubling: 80, 96, 112,
// 128, 160, ... 2 MiB.
//
// A class is a small float. With `steps` counted from 1 to 8, class c has
//
//   exponent e = max(c / 4, 1) - 1,   steps = c - 4e + 1,   bytes = 16 * steps * 2^e
//
//   c       0  1  2  3 |  4  5   6   7 |   8   9  10  11 |  12 ...  63
//   bytes  16 32 48 64 | 80 96 112 128 | 160 192 224 256 | 320 ... 2 MiB
//
// so that every conversion is a count of leading zeros and a shift: no table, which would be memory
// to load. A request above 64 bytes wastes less than a fifth of its block; powers of two have a
// class of their own, and so blocks of them are aligned to themselves wherever their container is.
#pragma once

#include "../util/bits.hpp"

namespace warpheap {

inline constexpr u32 size_class_count = 64;
inline constexpr u32 min_class_bytes = 16;
inline constexpr u32 max_class_bytes = 2u << 20;

/// The smallest class whose blocks hold `bytes`, which is in [1, max_class_bytes].
WARPHEAP_HOST_DEVICE constexpr u32 size_class_of(u64 bytes) {
  // The last byte's offset: leading zeros, but those of the first 64 bytes, and three more bits.
  auto const last = static_cast<u32>(bytes) - 1;
  auto const zeros = 31 - highest_bit(last | 64);
  return 4 * (25 - zeros) + ((last << zeros) >> 29);
}

/// class_bytes(size_class_of(bytes)).
WARPHEAP_HOST_DEVICE constexpr u32 class_bytes_for(u64 bytes) {
  auto const last = static_cast<u32>(bytes) - 1;
  auto const zeros = 31 - highest_bit(last | 64);
  return (last | (0x1fff'ffffu >> zeros)) + 1;
}

/// e of a class: log2 of its unit, in units of 16 bytes.
WARPHEAP_HOST_DEVICE constexpr u32 class_exponent(u32 size_class) {
  auto const less_one = static_cast<i32>(size_class / 4) - 1;
  return static_cast<u32>(less_one > 0 ? less_one : 0);
}

/// log2 of the unit of a class: its blocks are 1 to 8 units.
WARPHEAP_HOST_DEVICE constexpr u32 class_unit_log2(u32 size_class) { return 4 + class_exponent(size_class); }

/// Units in a block of the class, 1 to 8.
WARPHEAP_HOST_DEVICE constexpr u32 class_units(u32 size_class) {
  return size_class - 4 * class_exponent(size_class) + 1;
}

/// Bytes of a block of the class.
WARPHEAP_HOST_DEVICE constexpr u32 class_bytes(u32 size_class) {
  return (class_units(size_class) * min_class_bytes) << class_exponent(size_class);
}

/// How many classes have blocks of at most `bytes` bytes.
WARPHEAP_HOST_DEVICE constexpr u32 class_count_up_to(u64 bytes) {
  return bytes < max_class_bytes ? size_class_of(bytes + 1) : size_class_count;
}

/// The first class that holds `bytes` and whose size `alignment` divides. `alignment` is a power of
/// two; both are in [1, max_class_bytes].
WARPHEAP_HOST_DEVICE constexpr u32 aligned_size_class(u64 alignment, u64 bytes) {
  auto const size_class = size_class_of(bytes > alignment ? bytes : alignment);
  auto const units = class_units(size_class);
  auto const unit_log2 = class_unit_log2(size_class);
  auto const alignment_log2 = log2_floor(alignment);
  // At least `alignment` bytes in at most 8 units: a multiple of 2, 4 or 8 units is enough, and
  // there is one up to 8.
  auto const multiple_log2 = alignment_log2 > unit_log2 ? alignment_log2 - unit_log2 : 0;
  return size_class + static_cast<u32>(align_up(units, u64{1} << multiple_log2)) - units;
}

/// 2^31 / class_units(size_class), rounded down and raised by 1 where that leaves a remainder. A
/// tree of selects over single bits, which compiles to selects: a chain of comparisons with 1, 2,
/// 3, ... becomes a jump through a table.
WARPHEAP_HOST_DEVICE constexpr u32 class_units_reciprocal(u32 size_class) {
  constexpr u32 one = 1u << 31;
  bool const first = (size_class & 1) == 0, pair = (size_class & 2) == 0;
  u32 const up_to_two = first ? one : one / 2, up_to_four = first ? one / 3 + 1 : one / 4;
  u32 const up_to_six = first ? one / 5 + 1 : one / 6 + 1, up_to_eight = first ? one / 7 + 1 : one / 8;
  u32 const lower = pair ? up_to_two : up_to_four, upper = pair ? up_to_six : up_to_eight;
  return size_class < 4 ? lower : upper;
}

/// offset / class_bytes(size_class): which block of a container an offset lies in. `offset` < 2^26.
WARPHEAP_HOST_DEVICE constexpr u32 block_index(u32 size_class, u32 offset) {
  // The offset in units is q < 2^22. A reciprocal m with 0 <= m*units - 2^31 <= units makes q*m /
  // 2^31 exceed q/units by less than 1/units.
  auto const in_units = offset >> class_unit_log2(size_class);
  return static_cast<u32>((u64{2 * in_units} * class_units_reciprocal(size_class)) >> 32);
}

/// (1 << bytes_log2) / class_bytes(size_class): how many blocks a container of up to 2 MiB has room
/// for, which holds at least one. As block_index(), in fewer instructions.
WARPHEAP_HOST_DEVICE constexpr u32 block_count(u32 size_class, u32 bytes_log2) {
  // Of the largest container: its count of blocks of 1 to 4 units of 16 bytes (of_few); or, 16 bits
  // each, twice its count of blocks of 5 to 8 units (of_many). The units of classes 4 to 7 have 16
  // bytes, those of the next four twice as many, and so on.
  constexpr u32 most = max_class_bytes / min_class_bytes, most_log2 = log2_floor(max_class_bytes);
  constexpr u64 of_many = u64{most / 4} << 48 | u64{2 * most / 7} << 32 | u64{2 * most / 6} << 16 | 2 * most / 5;
  u32 const of_few = size_class == 2 ? most / 3 : most >> (size_class % 4 + 1) / 2;
  u32 const blocks = size_class < 4 ? of_few : static_cast<u32>(of_many >> (16 * (size_class % 4))) & 0xffff;
  return blocks >> (most_log2 - bytes_log2 + size_class / 4);
}

static_assert(class_bytes(0) == min_class_bytes && class_bytes(size_class_count - 1) == max_class_bytes);
static_assert(class_bytes(4) == 80 && class_bytes(7) == 128 && class_bytes(8) == 160 && class_bytes(12) == 320);
static_assert(block_count(2, 21) == 43690 && block_count(3, 20) == 16384 && block_count(63, 21) == 1);
static_assert(block_count(8, 18) == 1638 && block_count(6, 14) == 146);
static_assert(size_class_of(1) == 0 && size_class_of(max_class_bytes) == size_class_count - 1);

}  // namespace warpheap
