// SPDX-License-Identifier: Apache-2.0
// Scattering: hash finalisers that spread neighbouring inputs over the whole range, and a small
// generator made of one.
//
// They choose places to look and drive tests; they are not secret. The generator is a counter
// passed through the finaliser: its state is one 64-bit number, any seed is good, and sequences of
// different seeds do not fall into step.
// Sources: the 64-bit multipliers are Stafford's thirteenth variant, the counter's step is 2^64
// over the golden ratio (Steele, Lea and Flood, Fast splittable pseudorandom number generators,
// 2014); the 32-bit multipliers are Wellons' low-bias pair.
#pragma once

#include "../platform/types.hpp"

namespace warpheap {

/// A bijection of 64-bit words in which every input bit flips about half of the output bits. Keeps
/// 0.
WARPHEAP_HOST_DEVICE constexpr u64 mix(u64 x) {
  x = (x ^ (x >> 30)) * 0xbf58'476d'1ce4'e5b9u;
  x = (x ^ (x >> 27)) * 0x94d0'49bb'1331'11ebu;
  return x ^ (x >> 31);
}

/// A bijection of 32-bit words of that kind, at a third of the instructions. Keeps 0.
WARPHEAP_HOST_DEVICE constexpr u32 mix32(u32 x) {
  x = (x ^ (x >> 16)) * 0x7feb'352du;
  x = (x ^ (x >> 15)) * 0x846c'a68bu;
  return x ^ (x >> 16);
}

/// x scaled from [0, 2^32) to [0, n) by multiply-high: no division. The result is off from uniform
/// by less than n / 2^32.
WARPHEAP_HOST_DEVICE constexpr u32 scale_below(u32 x, u32 n) { return static_cast<u32>((u64{x} * n) >> 32); }

/// A sequence of random 32-bit numbers.
class random_sequence {
 public:
  WARPHEAP_HOST_DEVICE constexpr explicit random_sequence(u64 seed) : state_{mix(seed)} {}

  WARPHEAP_HOST_DEVICE constexpr u32 next() {
    state_ += step;
    return static_cast<u32>(mix(state_) >> 32);
  }

  /// Skips the next `numbers` numbers in one step.
  WARPHEAP_HOST_DEVICE constexpr void skip(u64 numbers) { state_ += numbers * step; }

  /// A number in [0, n); 0 if n is 0.
  WARPHEAP_HOST_DEVICE constexpr u32 below(u32 n) { return scale_below(next(), n); }

 private:
  static constexpr u64 step = 0x9e37'79b9'7f4a'7c15u;

  u64 state_;
};

}  // namespace warpheap
