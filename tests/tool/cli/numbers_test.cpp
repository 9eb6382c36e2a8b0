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

TEST(Numbers, WhatIsNoSizeIsRefused) {
  for (char const* const text : {"", "GiB", "-1", "+1", "1.5GiB", "8XB", "8GiBs", " 8", "8 GiB", "0x10", "1e9",
                                 "18446744073709551616", "16777216TiB", "99999999999999999999GiB"})
    EXPECT_THROW(parse_bytes("x", text), usage_error) << text;
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
