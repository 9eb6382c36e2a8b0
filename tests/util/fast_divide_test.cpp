// SPDX-License-Identifier: Apache-2.0
// Where division by multiplication could go wrong: at the multiples of the divisor and just below
// them, near the bound.
#include <gtest/gtest.h>

#include <vector>
#include <warpheap/util/fast_divide.hpp>
#include <warpheap/util/random.hpp>

namespace {

using namespace warpheap;

constexpr u32 bound = 1u << 31;

/// The quotients of `x` and its neighbours, where they are below the bound.
void expect_right_around(u32 divisor, u64 x) {
  fast_divider const divide{divisor};
  for (u64 near = x > 2 ? x - 2 : 0; near <= x + 2 && near < bound; ++near) {
    ASSERT_EQ(divide.quotient(static_cast<u32>(near)), near / divisor) << near << " / " << divisor;
  }
}

void expect_right_at_edges(u32 divisor) {
  auto const last = (bound - 1) / divisor;  // the largest quotient
  for (u64 quotient : {u64{0}, u64{1}, u64{2}, u64{3}, u64{last} / 2, u64{last} - (last > 0), u64{last}}) {
    expect_right_around(divisor, quotient * divisor);
  }
  expect_right_around(divisor, bound - 1);
}

TEST(FastDivide, IsRightAtTheEdgesForEverySmallDivisor) {
  for (u32 divisor = 1; divisor <= 20'000; ++divisor) expect_right_at_edges(divisor);
}

TEST(FastDivide, IsRightAtTheEdgesAroundEveryPowerOfTwo) {
  for (u32 e = 0; e <= 31; ++e) {
    for (i64 off = -5; off <= 5; ++off) {
      auto const divisor = (i64{1} << e) + off;
      if (divisor >= 1 && divisor <= i64{bound}) expect_right_at_edges(static_cast<u32>(divisor));
    }
  }
}

TEST(FastDivide, IsRightForRandomDivisorsAndDividends) {
  random_sequence random{2};
  for (u32 i = 0; i < 50'000; ++i) {
    auto const divisor = 1 + random.below(bound >> random.below(31));
    expect_right_at_edges(divisor);
    expect_right_around(divisor, random.below(bound));
  }
}

TEST(FastDivide, IsRightForEveryDividendOfAFewDivisors) {
  // The quotient never falls as the dividend grows, so the two ends of each quotient speak for all
  // between.
  for (u32 divisor : {48u, 641u, 1000u}) {
    fast_divider const divide{divisor};
    u32 wrong = 0;
    for (u32 first = 0, quotient = 0; first < bound; first += divisor, ++quotient) {
      auto const last = first + divisor <= bound ? first + divisor - 1 : bound - 1;
      wrong += divide.quotient(first) != quotient || divide.quotient(last) != quotient;
    }
    EXPECT_EQ(wrong, 0u) << "divisor " << divisor;
  }
}

static_assert(fast_divider{7}.quotient(bound - 1) == (bound - 1) / 7);

}  // namespace
