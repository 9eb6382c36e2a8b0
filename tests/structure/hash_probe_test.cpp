// SPDX-License-Identifier: Apache-2.0
// The hash of a counter: what its parameters promise, for tables of all sizes that matter.
#include "warpheap/structure/hash_probe.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "warpheap/util/random.hpp"

namespace hash_probe_test {

using namespace warpheap;

/// Probes after which all places were visited from the first place of `c`; 0 if they were not
/// within `most`.
u32 probes_to_cover(hash_probe const& probe, u32 c, u32 most) {
  std::vector<bool> seen(probe.places);
  u32 left = probe.places;
  u32 const first = probe.first(c);
  for (u32 i = 0; i < most; ++i) {
    u32 const place = i == 0 ? first : probe.next(first, i);
    EXPECT_LT(place, probe.places);
    if (seen[place]) continue;
    seen[place] = true;
    if (--left == 0) return i + 1;
  }
  return 0;
}

/// The formula of the paper, by chunks: b of them a block, n in all, with the slides' S and s.
u32 in_chunks(u64 c, u64 i, u64 b, u64 n, u64 k, u64 t, u64 step, u64 s) {
  u64 const first = b * (c / k * k * t + c % k) % n;
  return static_cast<u32>(i == 0 ? first : (first + (i + 1) * ((i + 1) * b * step % s)) % n);
}

TEST(HashProbe, IsTheFormulaOfThePaperInBlocks) {
  for (u32 const b : {1u, 2u, 4u, 8u})
    for (u32 const places : {64u, 640u, 4096u}) {
      auto const probe = hash_probe::over(places, {}, 32 / b);
      u32 const k = 1u << probe.run_log2, s = probe.step_modulus & 0xffff, step = probe.step_modulus >> 16;
      for (u32 c = 0; c < 5000; c += 7) {
        u32 const first = probe.first(c);
        ASSERT_EQ(first * b, in_chunks(c, 0, b, u64{places} * b, k, probe.multiplier, step, u64{s} * b));
        for (u32 i = 1; i < 40; ++i)
          ASSERT_EQ(probe.next(first, i) * b,
                    in_chunks(c, i, b, u64{places} * b, k, probe.multiplier, step, u64{s} * b));
      }
    }
}

// probe.H1
TEST(HashProbe, FirstPlacesOfConsecutiveNumbersAreAPermutation) {
  for (u32 places = 1; places <= 700; ++places)
    for (u32 const most_run : {1u, 4u, 8u}) {
      auto const probe = hash_probe::over(places, {}, most_run);
      for (u32 const from : {0u, 13u, 0x7fff'ff00u / places * places - 3 * places}) {
        std::vector<bool> seen(places);
        for (u32 c = from; c < from + places; ++c) {
          u32 const place = probe.first(c);
          ASSERT_LT(place, places);
          ASSERT_FALSE(seen[place]) << places << " places, number " << c;
          seen[place] = true;
        }
      }
    }
}

TEST(HashProbe, RunsLieSideBySide) {
  auto const probe = hash_probe::over(1024, {}, 8);
  for (u32 c = 0; c < 4096; c += 8)
    for (u32 i = 1; i < 8; ++i) EXPECT_EQ(probe.first(c + i), probe.first(c) + i);
  EXPECT_NE(probe.first(8), probe.first(7) + 1) << "and runs apart";
}

// probe.H2
TEST(HashProbe, VisitsEveryPlaceSoonerOrLater) {
  u32 most_turns = 0;
  for (u32 places = 1; places <= 300; ++places)
    for (u32 const c : {0u, 5u, 12345u}) {
      auto const probe = hash_probe::over(places, {}, 8);
      u32 const turns = probes_to_cover(probe, c, 2000 * 40);
      ASSERT_NE(turns, 0u) << places << " places";
      if (places > 100) most_turns = std::max(most_turns, turns / places);
    }
  EXPECT_GE(most_turns, 2u) << "so probes must be bounded";
  EXPECT_LE(most_turns, 40u);
}

/// N and s both powers of two, which the slides do not exclude: a part of the places is never
/// visited.
TEST(HashProbe, UnfitParametersAreNoticed) {
  hash_probe const unfit{256, 3, 11, 5u << 16 | 16, fast_divider{256}};
  EXPECT_EQ(probes_to_cover(unfit, 0, 256 * 1000), 0u);
  std::vector<u32> hits(22);
  hash_probe const shares{22, 1, 11, 5u << 16 | 17, fast_divider{22}};
  for (u32 c = 0; c < 22; ++c) ++hits[shares.first(c)];
  EXPECT_GT(*std::max_element(hits.begin(), hits.end()), 1u) << "T divides N/K";
}

TEST(HashProbe, KnowsPrimes) {
  std::vector<bool> composite(5000);
  for (u32 number = 2; number < composite.size(); ++number) {
    EXPECT_EQ(hash_probe::is_prime(number), !composite[number]) << number;
    for (u32 multiple = 2 * number; multiple < composite.size(); multiple += number) composite[multiple] = true;
  }
  EXPECT_FALSE(hash_probe::is_prime(0) || hash_probe::is_prime(1));
}

TEST(HashProbe, TakesTheNearestParametersThatFit) {
  // Nearest: the first prime from the wished one on, where several do not fit.
  auto const first_fit = [](u32 from, auto fits) {
    while (!hash_probe::is_prime(from) || !fits(from)) ++from;
    return from;
  };
  for (u32 const factors : {1u, 11u, 17u, 11u * 13, 17u * 19, 17u * 19 * 23, 11u * 13 * 17 * 19})
    for (u32 const step : {5u, 17u * 3, 17u * 19, 19u * 23})
      for (u32 const run : {1u, 8u}) {
        u32 const places = 8 * factors;
        auto const probe = hash_probe::over(places, {.run = run, .step = step}, 32);
        EXPECT_EQ(1u << probe.run_log2, run);
        EXPECT_EQ(probe.multiplier, first_fit(11, [&](u32 t) { return places / run % t != 0; })) << places;
        EXPECT_EQ(probe.step_modulus & 0xffff, first_fit(17, [&](u32 s) { return places % s != 0 && step % s != 0; }))
            << places << " places, step " << step;
      }
  auto const probe = hash_probe::over(11 * 17 * 8, {}, 8);
  EXPECT_EQ(probe.multiplier, 13u);
  EXPECT_EQ(probe.step_modulus & 0xffff, 19u);
  EXPECT_EQ(hash_probe::over(5, {}, 8).run_log2, 0u);
  EXPECT_EQ(hash_probe::over(20, {}, 8).run_log2, 2u);
  EXPECT_EQ(hash_probe::over(64, {.step = 34}, 8).step_modulus & 0xffff, 19u) << "17 divides S";
}

/// Looks that a call takes in a table held at a level, where each call follows the free of a place
/// drawn at random; with the hash's steps, or from one place to the next.
double looks_a_call(u32 places, double level, bool linear) {
  auto const probe = hash_probe::over(places, {}, 8);
  std::vector<bool> used(places);
  std::vector<u32> held;
  random_sequence random{places};
  u32 calls = 0;
  u64 looks = 0;
  auto const take = [&] {
    u32 const first = probe.first(calls++);
    u32 place = first;
    for (u32 i = 1; used[place]; ++i, ++looks) place = linear ? (first + i) % places : probe.next(first, i);
    ++looks;
    used[place] = true;
    held.push_back(place);
  };
  while (held.size() < places * level) take();
  looks = 0;
  u32 const measured = 10 * places;
  for (u32 i = 0; i < measured; ++i) {
    std::swap(held[random.below(static_cast<u32>(held.size()))], held.back());
    used[held.back()] = false;
    held.pop_back();
    take();
  }
  return static_cast<double>(looks) / measured;
}

TEST(HashProbe, LooksLessThanHalfAsOftenAsLinearSteps) {
  for (u32 const places : {1024u, 8192u, 65536u})
    for (double const level : {0.7, 0.85})
      EXPECT_LT(2 * looks_a_call(places, level, false), looks_a_call(places, level, true)) << places << ", " << level;
}

}  // namespace hash_probe_test
