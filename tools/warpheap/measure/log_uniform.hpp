// SPDX-License-Identifier: Apache-2.0
// Sizes drawn log-uniformly: every octave of a range is as likely as every other. Only integers are
// used, so a GPU and a CPU draw the same sizes: 2^f for f in [0, 1) is taken as 1 + f - c f (1 -
// f), within 0.4% of the true value, and with the true mean.
#pragma once

#include <algorithm>
#include <cmath>

#include "result.hpp"

namespace warpheap::bench {

/// Draws from [least, most].
struct log_uniform_draw {
  static constexpr u32 fraction_bits = 27;
  static constexpr u64 one = u64{1} << fraction_bits;

  u64 least = 16, most = 16;
  u32 octaves = 0;  ///< log2(most / least), in 2^-27: at most 30, for sizes up to 1 GiB

  static log_uniform_draw from(size_range range) {
    double const octaves = std::log2(static_cast<double>(range.most) / static_cast<double>(range.least));
    return {range.least, range.most, static_cast<u32>(std::lround(octaves * static_cast<double>(one)))};
  }

  /// The size that `random`, uniform in 32 bits, stands for.
  WARPHEAP_HOST_DEVICE constexpr u64 of(u32 random) const {
    constexpr u64 bend = 46'148'048;  // c = 6 (3/2 - 1/ln 2) = 0.34383, in 2^-27
    u64 const exponent = (u64{octaves} * random) >> 32;
    u64 const fraction = exponent & (one - 1);
    u64 const missing = (fraction * (one - fraction)) >> fraction_bits;
    u64 const factor = one + fraction - ((bend * missing) >> fraction_bits);
    u64 const size = ((least << (exponent >> fraction_bits)) * factor) >> fraction_bits;
    return size < most ? size : most;
  }

  double mean() const {
    if (least == most) return static_cast<double>(least);
    auto const span = static_cast<double>(most - least);
    // Sizes are rounded down, by a half on average.
    return std::max(static_cast<double>(least), span / std::log(static_cast<double>(most) / least) - 0.5);
  }
};

}  // namespace warpheap::bench
