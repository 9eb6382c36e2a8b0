// SPDX-License-Identifier: Apache-2.0
// Numbers as text, for code that has no standard library: integers, and floating-point numbers with
// a fixed count of decimals, of which every digit is right.
//
// A double is m * 2^e. Its decimals are the digits of the integer m * 2^e * 10^decimals, rounded;
// so they are exact, in integers of 36 words at most, of which numbers near 1 need two or three.
#pragma once

#include "../platform/types.hpp"
#include "bits.hpp"

namespace warpheap {

/// The text of an integer, made where it is constructed: at most 20 characters, without a zero at
/// the end.
class integer_text {
 public:
  /// In base 10 or 16, with zeros in front if it has fewer than `width` digits, which is at most
  /// 20.
  WARPHEAP_HOST_DEVICE explicit constexpr integer_text(u64 number, u32 base = 10, u32 width = 1) {
    do {
      text_[--begin_] = "0123456789abcdef"[number % base];
      number /= base;
    } while (number != 0 || (size() < width && begin_ != 0));
  }
  /// Decimal, with a sign if it is negative.
  WARPHEAP_HOST_DEVICE static constexpr integer_text of_signed(i64 number) {
    integer_text made{number < 0 ? 0 - static_cast<u64>(number) : static_cast<u64>(number)};
    if (number < 0) made.text_[--made.begin_] = '-';
    return made;
  }

  /// The first character.
  WARPHEAP_HOST_DEVICE constexpr char const* data() const { return text_ + begin_; }
  /// How many.
  WARPHEAP_HOST_DEVICE constexpr u32 size() const { return room - begin_; }

 private:
  static constexpr u32 room = 20;

  char text_[room] = {};
  u32 begin_ = room;
};

/// Most decimals that write_fixed() writes.
inline constexpr u32 most_decimals = 32;

namespace number_text_parts {

/// A double without its sign: mantissa * 2^exponent, or no finite number.
struct binary_fraction {
  static constexpr u32 mantissa_bits = 52, bias = 1075, most_exponent = 2047;

  u64 mantissa;
  i32 exponent;
  bool is_negative, is_finite;

  WARPHEAP_HOST_DEVICE explicit binary_fraction(double value) {
    // Byte by byte: CUDA 12.0 has no __builtin_bit_cast.
    u64 bits = 0;
    for (u32 i = 0; i < sizeof bits; ++i) reinterpret_cast<u8*>(&bits)[i] = reinterpret_cast<u8 const*>(&value)[i];
    u32 const field = static_cast<u32>(bits >> mantissa_bits) & most_exponent;
    u64 const low = bits & low_mask(mantissa_bits);
    // Subnormal numbers have the exponent of the smallest normal ones, and no hidden bit.
    mantissa = field != 0 ? low | u64{1} << mantissa_bits : low;
    exponent = static_cast<i32>(field != 0 ? field : 1) - static_cast<i32>(bias);
    is_negative = bits >> 63;
    is_finite = field != most_exponent;
  }

  /// Digits before the point are no more than this, also after rounding up.
  WARPHEAP_HOST_DEVICE constexpr u32 most_digits() const {
    i32 const bits = exponent + static_cast<i32>(mantissa_bits) + 1;
    return bits > 0 ? static_cast<u32>(bits) * 30103 / 100000 + 1 : 1;  // log10(2), rounded up
  }
};

/// An integer of up to 1152 bits: 1024 of a double, and 107 of 10^32.
class large_integer {
 public:
  static constexpr u32 most_words = 36;

  WARPHEAP_HOST_DEVICE explicit large_integer(u64 value) {
    words_[0] = static_cast<u32>(value);
    words_[1] = static_cast<u32>(value >> 32);
    count_ = 2;
  }

  WARPHEAP_HOST_DEVICE bool is_zero() const {
    u32 any = 0;
    for (u32 i = 0; i < count_; ++i) any |= words_[i];
    return any == 0;
  }

  WARPHEAP_HOST_DEVICE void multiply(u32 factor) {
    u64 carry = 0;
    for (u32 i = 0; i < count_; ++i) {
      carry += u64{words_[i]} * factor;
      words_[i] = static_cast<u32>(carry);
      carry >>= 32;
    }
    if (carry) words_[count_++] = static_cast<u32>(carry);
  }

  WARPHEAP_HOST_DEVICE void shift_left(u32 bits) {
    u32 const moved = bits / 32, within = bits % 32;
    words_[count_++] = 0;
    for (u32 i = count_; i-- > 0;) {
      u64 const pair = u64{words_[i]} << 32 | (i != 0 ? words_[i - 1] : 0);
      // within == 0 takes the word itself
      words_[i + moved] = static_cast<u32>(pair << within >> 32);
    }
    for (u32 i = 0; i < moved; ++i) words_[i] = 0;
    count_ += moved;
    drop_zeros();
  }

  /// Divides by 2^bits, and rounds to the nearest integer, from the middle to the even one.
  WARPHEAP_HOST_DEVICE void shift_right_to_even(u32 bits) {
    if (bits == 0) return;
    u32 const moved = bits / 32, within = bits % 32;
    bool const half = bit(bits - 1), more = any_below(bits - 1);
    for (u32 i = 0; i < count_; ++i)
      words_[i] = static_cast<u32>((u64{word(i + moved + 1)} << 32 | word(i + moved)) >> within);
    if (half && (more || words_[0] % 2 != 0)) add_one();
    drop_zeros();
  }

  /// Divides, and returns what is left.
  WARPHEAP_HOST_DEVICE u32 divide(u32 divisor) {
    u64 rest = 0;
    for (u32 i = count_; i-- > 0;) {
      rest = rest << 32 | words_[i];
      words_[i] = static_cast<u32>(rest / divisor);
      rest %= divisor;
    }
    drop_zeros();
    return static_cast<u32>(rest);
  }

 private:
  WARPHEAP_HOST_DEVICE u32 word(u32 i) const { return i < count_ ? words_[i] : 0; }
  WARPHEAP_HOST_DEVICE bool bit(u32 i) const { return word(i / 32) >> i % 32 & 1; }
  WARPHEAP_HOST_DEVICE bool any_below(u32 bits) const {
    u32 any = word(bits / 32) & low_mask32(bits % 32);
    for (u32 i = 0; i < bits / 32 && i < count_; ++i) any |= words_[i];
    return any != 0;
  }
  /// There is room: what was shifted out had at least a bit.
  WARPHEAP_HOST_DEVICE void add_one() {
    for (u32 i = 0; i < count_ && ++words_[i] == 0; ++i) {
    }
  }
  WARPHEAP_HOST_DEVICE void drop_zeros() {
    while (count_ > 1 && words_[count_ - 1] == 0) --count_;
  }

  u32 words_[most_words];
  u32 count_;
};

}  // namespace number_text_parts

/// Characters that write_fixed() may use for this number, at most.
WARPHEAP_HOST_DEVICE inline u32 most_fixed_chars(double value, u32 decimals) {
  number_text_parts::binary_fraction const number{value};
  return number.is_finite ? 2 + number.most_digits() + decimals : 4;
}

/// Writes `value` with `decimals` digits behind the point, up to most_decimals, as printf's "%.*f"
/// writes it: correctly rounded, from the middle to the even digit; "inf", "-inf", and "nan" for
/// every one. `to` has room for most_fixed_chars(). Returns how many characters it wrote; no zero
/// follows them.
WARPHEAP_HOST_DEVICE inline u32 write_fixed(char* to, double value, u32 decimals) {
  constexpr u32 billion = 1'000'000'000;
  number_text_parts::binary_fraction const number{value};
  if (!number.is_finite) {
    char const* const text = number.mantissa != u64{1} << number.mantissa_bits ? "nan" : "-inf";
    u32 const skipped = *text == '-' && !number.is_negative ? 1 : 0;
    u32 length = 0;
    for (; text[skipped + length]; ++length) to[length] = text[skipped + length];
    return length;
  }
  number_text_parts::large_integer scaled{number.mantissa};
  for (u32 i = 0; i < decimals; ++i) scaled.multiply(10);
  if (number.exponent > 0) scaled.shift_left(static_cast<u32>(number.exponent));
  else scaled.shift_right_to_even(static_cast<u32>(-number.exponent));

  // From the last digit to the first, and then all to the front.
  u32 const room = most_fixed_chars(value, decimals);
  char* at = to + room;
  u32 part = 0, digits = 0;
  do {
    if (digits % 9 == 0) part = scaled.divide(billion);
    *--at = static_cast<char>('0' + part % 10);
    part /= 10;
    if (++digits == decimals) *--at = '.';
  } while (digits <= decimals || part != 0 || !scaled.is_zero());
  if (number.is_negative) *--at = '-';
  u32 const length = static_cast<u32>(to + room - at);
  for (u32 i = 0; i < length; ++i) to[i] = at[i];
  return length;
}

}  // namespace warpheap
