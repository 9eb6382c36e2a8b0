// SPDX-License-Identifier: Apache-2.0
// The finalisers scatter, and the generator is even enough to choose places by.
#include <gtest/gtest.h>

#include <set>
#include <vector>
#include <warpheap/util/bits.hpp>
#include <warpheap/util/random.hpp>

namespace {

using namespace warpheap;

TEST(Random, MixingLosesNothing) {
  std::set<u64> wide;
  std::set<u32> narrow;
  for (u32 i = 0; i < 100'000; ++i) {
    wide.insert(mix(i));
    narrow.insert(mix32(i));
  }
  EXPECT_EQ(wide.size(), 100'000u);
  EXPECT_EQ(narrow.size(), 100'000u);
  EXPECT_EQ(mix(0), 0u);
  EXPECT_EQ(mix32(0), 0u);
}

TEST(Random, EachInputBitFlipsAboutHalfOfTheOutput) {
  random_sequence random{3};
  for (u32 bit = 0; bit < 64; ++bit) {
    u32 wide = 0, narrow = 0;
    for (u32 i = 0; i < 200; ++i) {
      auto const x = u64{random.next()} << 32 | random.next();
      wide += popcount(mix(x) ^ mix(x ^ u64{1} << bit));
      narrow += popcount(mix32(static_cast<u32>(x)) ^ mix32(static_cast<u32>(x) ^ 1u << bit % 32));
    }
    EXPECT_NEAR(wide / 200.0, 32, 2) << "bit " << bit;
    EXPECT_NEAR(narrow / 200.0, 16, 1.5) << "bit " << bit;
  }
}

TEST(Random, BelowReachesEveryNumberAboutEquallyOften) {
  for (u32 n : {1u, 2u, 7u, 64u, 1000u}) {
    random_sequence random{n};
    std::vector<u32> seen(n);
    auto const draws = 1000 * n;
    for (u32 i = 0; i < draws; ++i) {
      auto const drawn = random.below(n);
      ASSERT_LT(drawn, n);
      ++seen[drawn];
    }
    for (auto const times : seen) EXPECT_NEAR(times, 1000, 200) << "n " << n;
  }
  EXPECT_EQ(random_sequence{1}.below(0), 0u);
}

TEST(Random, SkippingIsDrawingAndForgetting) {
  for (u64 const numbers : {0, 1, 2, 1000}) {
    random_sequence skipped{7}, drawn{7};
    skipped.skip(numbers);
    for (u64 i = 0; i < numbers; ++i) drawn.next();
    EXPECT_EQ(skipped.next(), drawn.next()) << numbers;
  }
}

TEST(Random, NeighbouringSeedsGiveUnlikeSequences) {
  std::set<u32> firsts;
  u32 agreeing = 0;
  for (u64 seed = 0; seed < 1000; ++seed) {
    random_sequence one{seed}, next{seed + 1};
    firsts.insert(one.next());
    next.next();
    for (u32 i = 0; i < 32; ++i) agreeing += one.below(16) == next.below(16);
  }
  EXPECT_GE(firsts.size(), 998u);
  EXPECT_NEAR(agreeing / 32000.0, 1 / 16.0, 0.01);
}

TEST(Random, TheSameSeedRepeats) {
  random_sequence one{7}, two{7};
  for (u32 i = 0; i < 100; ++i) ASSERT_EQ(one.next(), two.next());
}

}  // namespace
