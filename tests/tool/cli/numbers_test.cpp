// SPDX-License-Identifier: Apache-2.0
// Sizes and counts as people type them.
#include "cli/numbers.hpp"
#include "cli/usage_error.hpp"

#include <gmock/gmock.h>

namespace warpheap::tool { namespace {

TEST(Numbers, SizesTakeBinaryAndDecimalUnits) {
  EXPECT_EQ(parse_bytes("x", "1000"), 1000u);
  EXPECT_EQ(parse_bytes("x", "64K"), 65536u);
  EXPECT_EQ(parse_bytes("x", "1kib"), 1024u);
  EXPECT_EQ(parse_bytes("x", "512MiB"), u64{512} << 20);
  EXPECT_EQ(parse_bytes("x", "8GiB"), u64{8} << 30);
  EXPECT_EQ(parse_bytes("x", "2TB"), u64{2'000'000'000'000});
  EXPECT_EQ(parse_bytes("x", "18446744073709551615B"), ~u64{0});
}

TEST(Numbers, SizesMayHaveFractionsOfAUnit) {
  EXPECT_EQ(parse_bytes("x", "1.5GiB"), u64{3} << 29);
  EXPECT_EQ(parse_bytes("x", "1.5G"), u64{3} << 29);
  EXPECT_EQ(parse_bytes("x", "1.5GB"), 1'500'000'000u);
  EXPECT_EQ(parse_bytes("x", "0.5MiB"), u64{1} << 19);
  EXPECT_EQ(parse_bytes("x", "0.0009765625K"), 1u);
  EXPECT_EQ(parse_bytes("x", "1.0000000000000000000000000000000"), 1u) << "more digits than a number has";
  EXPECT_EQ(parse_bytes("x", "0.000000000000000000000000000000K"), 0u);
  EXPECT_EQ(parse_bytes("x", "1e9"), 1'000'000'000u);
  EXPECT_EQ(parse_bytes("x", "1_048_576"), u64{1} << 20);
  for (char const* const text : {"0.3KiB", "1.5", "1.5B", "0.0001KB", "0.00048828125K", "1.0000000000000000000001GiB"})
    EXPECT_THAT([&] { parse_bytes("x", text); }, testing::ThrowsMessage<usage_error>(testing::EndsWith(
                                                     std::string{"'"} + text + "' is not a whole number of bytes")))
        << text;
}

TEST(Numbers, WhatIsNoSizeIsRefused) {
  for (char const* const text : {"",
                                 "GiB",
                                 "-1",
                                 "+1",
                                 "8XB",
                                 "8GiBs",
                                 " 8",
                                 "8 GiB",
                                 "0x10",
                                 ".5GiB",
                                 "1.GiB",
                                 "1..5G",
                                 "1.5.5G",
                                 "1e-1K",
                                 "1e+3",
                                 "1eK",
                                 "e3",
                                 "_1",
                                 "1_",
                                 "1__0",
                                 "1_K",
                                 "1,5GiB",
                                 "18446744073709551616",
                                 "16777216TiB",
                                 "99999999999999999999GiB",
                                 "1e20",
                                 "1e999999999999999999999"})
    EXPECT_THROW(parse_bytes("x", text), usage_error) << text;
}

TEST(Numbers, ErrorsOfSizesSayTheUnits) {
  EXPECT_THAT([] { parse_bytes("--pool", "8XB"); },
              testing::ThrowsMessage<usage_error>(
                  "--pool: '8XB' is not a size; sizes are like 1000, 64K, 512MiB, 1.5GiB (G and GiB are 2^30, GB is "
                  "10^9; likewise K, M and T)"));
}

TEST(Numbers, CountsAreWrittenInSeveralWays) {
  for (char const* const text : {"1000000", "1_000_000", "1e6", "1E6", "1.0e6", "0.1e7"})
    EXPECT_EQ(parse_count("x", text), 1'000'000u) << text;
  EXPECT_EQ(parse_count("x", "1.8446744073709551615e19"), ~u64{0});
  EXPECT_EQ(parse_count("x", "0e999999999999"), 0u);
  EXPECT_THROW(parse_count("x", "18446744073709551616"), usage_error);
  for (char const* const text : {"1M", "1.5", "1e-3", "15e", "1_", "1 000", "1,000", "", "-1"})
    EXPECT_THAT([&] { parse_count("x", text); },
                testing::ThrowsMessage<usage_error>(testing::EndsWith(
                    std::string{"'"} + text +
                    "' is not a whole number; these are like 1000000, 1_000_000, 1e6, without a unit")))
        << text;
}

TEST(Numbers, RealNumbersMayHaveSeparators) {
  EXPECT_EQ(parse_real("x", "1_000.5", 0, 1e4), 1000.5);
  EXPECT_EQ(parse_real("x", "1e-4", 0, 1), 1e-4);
  EXPECT_THROW(parse_real("x", "_1", 0, 1), usage_error);
}

TEST(Numbers, LimitsAreInclusive) {
  EXPECT_EQ(parse_bytes("x", "4", 4, 8), 4u);
  EXPECT_EQ(parse_bytes("x", "8", 4, 8), 8u);
  EXPECT_THROW(parse_bytes("x", "3", 4, 8), usage_error);
  EXPECT_THROW(parse_bytes("x", "9", 4, 8), usage_error);
  EXPECT_EQ(parse_count("x", "7", 7, 7), 7u);
  EXPECT_THROW(parse_count("x", "8", 7, 7), usage_error);
  EXPECT_THROW(parse_count("x", "7K"), usage_error);
}

TEST(Numbers, ListsHaveNoEmptyItems) {
  EXPECT_THAT(split_list("x", "a,b"), testing::ElementsAre("a", "b"));
  for (char const* const text : {"", ",", "a,", ",a", "a,,b"}) EXPECT_THROW(split_list("x", text), usage_error) << text;
}

TEST(Numbers, RangesGoUpwards) {
  auto const range = parse_range("x", "16-1K", 1, 1024);
  EXPECT_EQ(range.least, 16u);
  EXPECT_EQ(range.most, 1024u);
  EXPECT_EQ(parse_range("x", "0.5K-1e3", 1, 1024), (bench::size_range{512, 1000}));
  for (char const* const text : {"16", "-16", "16-", "64-16", "16-2K", "0-16", "a-b"})
    EXPECT_THROW(parse_range("x", text, 1, 1024), usage_error) << text;
}

TEST(Numbers, SizesMayBeStepped) {
  EXPECT_THAT(parse_stepped_bytes("x", "64K", 1, 65536), testing::ElementsAre(65536u));
  EXPECT_THAT(parse_stepped_bytes("x", "8-32:8", 1, 1024), testing::ElementsAre(8u, 16u, 24u, 32u));
  EXPECT_THAT(parse_stepped_bytes("x", "1-1K:512", 1, 1024), testing::ElementsAre(1u, 513u)) << "1025 is beyond";
  EXPECT_THAT(parse_stepped_bytes("x", "5-5:1", 1, 1024), testing::ElementsAre(5u));
  EXPECT_EQ(parse_stepped_bytes("x", "1-65536:1", 1, 1 << 20).size(), most_stepped_sizes);
  for (char const* const text : {"8-32", "8:8", "8-32:", "8-32:0", "32-8:8", "8-2K:8", "0-8:8", "8-32:8:8", ":8", "-8",
                                 "1-65537:1", "8-32:x", "8-32:2K"})
    EXPECT_THROW(parse_stepped_bytes("x", text, 1, text[2] == '6' ? 1 << 20 : 1024), usage_error) << text;
}

TEST(Numbers, SizesAreWrittenExactly) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1000), "1000 B");
  EXPECT_EQ(format_bytes(u64{8} << 30), "8 GiB");
  EXPECT_EQ(format_bytes(3 * 512), "1536 B");
}

TEST(Numbers, RatesHaveThreeDigits) {
  EXPECT_EQ(format_rate(0), "0.00");
  EXPECT_EQ(format_rate(999.4), "999");
  EXPECT_EQ(format_rate(1.29e9), "1.29 G");
  EXPECT_EQ(format_rate(69.04e9), "69.0 G");
}

}}  // namespace warpheap::tool
