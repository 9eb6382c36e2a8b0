// SPDX-License-Identifier: Apache-2.0
// Numbers as text, beside what the C library prints.
#include "warpheap/util/number_text.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <string>

#include "warpheap/util/random.hpp"

namespace number_text_test {

using namespace warpheap;

std::string text_of(integer_text const& number) { return {number.data(), number.size()}; }

template <class... Arguments>
std::string printed(char const* format, Arguments... arguments) {
  char text[400];
  std::snprintf(text, sizeof text, format, arguments...);
  return text;
}

TEST(IntegerText, HasTheDigitsThatPrintfWrites) {
  random_sequence random{3};
  for (u32 i = 0; i < 20000; ++i) {
    u64 const number = (u64{random.next()} << 32 | random.next()) >> random.below(64);
    EXPECT_EQ(text_of(integer_text{number}), printed("%llu", number));
    EXPECT_EQ(text_of(integer_text{number, 16}), printed("%llx", number));
    auto const negative = static_cast<i64>(0 - number);
    EXPECT_EQ(text_of(integer_text::of_signed(negative)), printed("%lld", negative));
  }
  constexpr i64 least = std::numeric_limits<i64>::min();
  EXPECT_EQ(text_of(integer_text::of_signed(least)), "-9223372036854775808");
  EXPECT_EQ(text_of(integer_text{~u64{0}}), "18446744073709551615");
  EXPECT_EQ(text_of(integer_text{0}), "0");
}

TEST(IntegerText, IsFilledUpWithZeros) {
  for (u32 width = 0; width <= 20; ++width) {
    EXPECT_EQ(text_of(integer_text(0xbeef, 16, width)), printed("%0*x", static_cast<int>(width), 0xbeef));
    EXPECT_EQ(text_of(integer_text(0, 16, width)), printed("%0*x", width ? static_cast<int>(width) : 1, 0));
  }
}

static_assert(integer_text{120}.size() == 3 && *integer_text{120}.data() == '1', "also in constant expressions");

/// What write_fixed() writes, which stays within its bound.
std::string fixed(double number, u32 decimals) {
  u32 const room = most_fixed_chars(number, decimals);
  std::string text(room + 8, '#');
  u32 const written = write_fixed(text.data(), number, decimals);
  EXPECT_LE(written, room);
  EXPECT_EQ(text.substr(room), "########") << number;
  return text.substr(0, written);
}

void expect_as_printed(double number, u32 decimals) {
  EXPECT_EQ(fixed(number, decimals), printed("%.*f", static_cast<int>(decimals), number)) << std::hexfloat << number;
}

TEST(WriteFixed, RoundsAnyNumberAsPrintfDoes) {
  random_sequence random{7};
  for (u32 i = 0; i < 100000; ++i) {
    u64 const bits = u64{random.next()} << 32 | random.next();
    auto const number = __builtin_bit_cast(double, bits);
    if (std::isfinite(number)) expect_as_printed(number, random.below(most_decimals + 1));
  }
}

TEST(WriteFixed, RoundsNumbersOfUsualSizesAsPrintfDoes) {
  random_sequence random{8};
  for (u32 i = 0; i < 100000; ++i) {
    double const number = std::ldexp(random.next(), -static_cast<int>(random.below(64)));
    expect_as_printed(number, random.below(8));
    expect_as_printed(static_cast<float>(-number), random.below(8));
  }
}

TEST(WriteFixed, RoundsFromTheMiddleToTheEvenDigit) {
  EXPECT_EQ(fixed(0.5, 0), "0");
  EXPECT_EQ(fixed(1.5, 0), "2");
  EXPECT_EQ(fixed(2.5, 0), "2");
  EXPECT_EQ(fixed(0.125, 2), "0.12");
  EXPECT_EQ(fixed(0.375, 2), "0.38");
  EXPECT_EQ(fixed(std::nextafter(0.125, 1), 2), "0.13");
}

TEST(WriteFixed, WritesWhatIsSmallLargeOrNoNumber) {
  using limits = std::numeric_limits<double>;
  for (u32 decimals = 0; decimals <= most_decimals; ++decimals)
    for (double const number :
         {0.0, -0.0, limits::max(), -limits::max(), limits::min(), limits::denorm_min(), 9.9999999, 999.999999999,
          0x1p-1074, 0x1p-33, 0x1p52, 0x1p53, 0x1p64, 0x1p96, 1e22, 1e23})
      expect_as_printed(number, decimals);
  EXPECT_EQ(fixed(limits::infinity(), 3), "inf");
  EXPECT_EQ(fixed(-limits::infinity(), 0), "-inf");
  EXPECT_EQ(fixed(limits::quiet_NaN(), 3), "nan");
  EXPECT_EQ(fixed(-limits::quiet_NaN(), 3), "nan");
}

}  // namespace number_text_test
