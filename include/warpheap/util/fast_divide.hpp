// SPDX-License-Identifier: Apache-2.0
// Division by a number that is known long before the dividend: one multiply-high and one shift in
// place of the twenty or so instructions of an integer division on a GPU.
//
// For a divisor d let s = ceil(log2 d) and m = ceil(2^(31+s) / d), which fits 32 bits because
// 2^(s-1) < d. Then m*d = 2^(31+s) + e with 0 <= e < d <= 2^s, so
//
//   x*m / 2^(31+s) = x/d + (x/2^31) * (e/2^s) / d,
//
// which exceeds x/d by less than 1/d while x < 2^31, and so has the same integer part. Doubling x,
// which still fits 32 bits, puts the product's quotient in its high word.
// Source: Granlund and Montgomery, Division by invariant integers using multiplication, 1994.
#pragma once

#include "bits.hpp"

namespace warpheap {

/// Divides x < 2^31 by a fixed divisor in [1, 2^31].
struct fast_divider {
  u32 multiplier;
  u32 shift;

  WARPHEAP_HOST_DEVICE constexpr explicit fast_divider(u32 divisor)
      : multiplier{static_cast<u32>(div_ceil(u64{1} << (31 + log2_ceil(divisor)), divisor))},
        shift{log2_ceil(divisor)} {}

  /// x / divisor, for x < 2^31.
  WARPHEAP_HOST_DEVICE constexpr u32 quotient(u32 x) const {
    return static_cast<u32>((u64{2 * x} * multiplier) >> 32) >> shift;
  }
};

}  // namespace warpheap
