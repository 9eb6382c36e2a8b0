// SPDX-License-Identifier: Apache-2.0
// Where in a table of N places the c-th caller looks for a free one, and where next: double hashing
// of a counter in place of a key. Callers that come together have consecutive numbers, and the
// first places of consecutive numbers are all different, K of them side by side; so a fresh table
// is filled without one collision, and neighbours share memory words.
//
//   h(c, 0) = (c/K * K * T + c mod K) mod N                      T prime
//   h(c, i) = (h(c, 0) + (i+1) * ((i+1) * S mod s)) mod N        i >= 1
//
//   probe.H1  K divides N and T has no divisor in common with N/K: the first places of any N
//       consecutive numbers are all places.
//   probe.H2  s has no divisor in common with N and does not divide S: every place is among the
//       h(c, i) of one c, sooner or later; within some 12 to 22 N probes. So a caller that must be
//       sure bounds the probes, and looks at all places then.
//
// Places are blocks. Counted in chunks, b of them in a block, this is the formula of the paper,
// whose N and s are b times these.
// Cost: two divisions by multiplication a place.
// Source: Adinetz and Pleiter 2014. There the user must choose parameters that fit; here over()
// makes them fit.
#pragma once

#include "../util/bits.hpp"
#include "../util/fast_divide.hpp"

namespace warpheap {

/// The parameters as wished.
struct hash_parameters {
  u32 run = 8;          ///< K, a power of two: first places in a row
  u32 multiplier = 11;  ///< T, a prime: how far apart the runs are
  u32 step = 5;         ///< S
  u32 modulus = 17;     ///< s
};

/// The sequences of places of one table, for N in [1, 2^20] places. 24 bytes, trivially copyable.
struct hash_probe {
  u32 places;           ///< N
  u32 run_log2;         ///< K
  u32 multiplier;       ///< T
  u32 step_modulus;     ///< S below s
  fast_divider divide;  ///< by N

  static constexpr u32 max_places = 1u << 20;
  /// Numbers are taken modulo this.
  static constexpr u32 max_numbers = 1u << 31;

  /// h(c, 0); c is taken modulo max_numbers.
  WARPHEAP_HOST_DEVICE constexpr u32 first(u32 c) const {
    // h(c, 0) is h(c mod N, 0), by probe.H1.
    u32 const number = rest(c % max_numbers), run = number >> run_log2, within = number - (run << run_log2);
    return rest((run * multiplier << run_log2) + within);
  }

  /// h(c, i) for i >= 1 and i below 2^20, of the c whose first place is `first`.
  WARPHEAP_HOST_DEVICE constexpr u32 next(u32 first, u32 i) const {
    u32 const step = step_modulus >> 16, modulus = step_modulus & 0xffff;
    return rest(first + (i + 1) * ((i + 1) % modulus * step % modulus));
  }

  /// The nearest parameters to `wished` for which probe.H1 and probe.H2 hold, with K at most
  /// `most_run`.
  WARPHEAP_HOST_DEVICE static constexpr hash_probe over(u32 places, hash_parameters wished, u32 most_run) {
    u32 run_log2 = log2_floor(wished.run < most_run ? wished.run : most_run);
    while (places % (1u << run_log2) != 0) --run_log2;
    u32 multiplier = wished.multiplier;
    while (gcd(multiplier, places >> run_log2) != 1) multiplier = next_prime(multiplier);
    u32 modulus = wished.modulus;
    while (gcd(modulus, places) != 1 || wished.step % modulus == 0) modulus = next_prime(modulus);
    return {places, run_log2, multiplier, wished.step % modulus << 16 | modulus, fast_divider{places}};
  }

  WARPHEAP_HOST_DEVICE static constexpr u32 gcd(u32 a, u32 b) {
    while (b != 0) {
      u32 const rest = a % b;
      a = b;
      b = rest;
    }
    return a;
  }

  WARPHEAP_HOST_DEVICE static constexpr bool is_prime(u32 number) {
    for (u32 divisor = 2; divisor * divisor <= number; ++divisor)
      if (number % divisor == 0) return false;
    return number > 1;
  }

 private:
  WARPHEAP_HOST_DEVICE constexpr u32 rest(u32 x) const { return x - divide.quotient(x) * places; }

  WARPHEAP_HOST_DEVICE static constexpr u32 next_prime(u32 number) {
    do ++number;
    while (!is_prime(number));
    return number;
  }
};

static_assert(sizeof(hash_probe) == 24);
static_assert(hash_probe::over(64, {}, 8).first(8) == 24 && hash_probe::over(64, {}, 8).first(9) == 25);
static_assert(hash_probe::over(22, {}, 8).multiplier == 13 &&
              hash_probe::over(34, {}, 8).step_modulus == (5 << 16 | 19));

}  // namespace warpheap
