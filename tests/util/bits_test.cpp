// SPDX-License-Identifier: Apache-2.0
// Bit functions against slow ones written bit by bit: every word of 8 bits at every place, and many
// random words.
#include <gtest/gtest.h>

#include <vector>
#include <warpheap/util/bits.hpp>
#include <warpheap/util/random.hpp>

namespace {

using namespace warpheap;

/// Words that are likely to break bit tricks, and words of every density.
std::vector<u64> sample_words() {
  std::vector<u64> words{0, 1, 3, ~u64{0}, ~u64{0} - 1, u64{1} << 63, u64{1} << 32, u64{1} << 31, 0xffff'ffffu};
  for (u64 byte = 0; byte < 256; ++byte) {
    for (u32 place = 0; place <= 56; place += 7) words.push_back(byte << place);
  }
  random_sequence random{1};
  for (u32 i = 0; i < 3000; ++i) {
    auto const one = u64{random.next()} << 32 | random.next();
    auto const two = u64{random.next()} << 32 | random.next();
    words.insert(words.end(), {one, one & two, one | two, one >> random.below(64)});
  }
  return words;
}

std::vector<u32> set_bits(u64 word) {
  std::vector<u32> bits;
  for (u32 i = 0; i < 64; ++i) {
    if (word >> i & 1) bits.push_back(i);
  }
  return bits;
}

TEST(Bits, CountsAndFindsTheOutermostSetBits) {
  for (auto const word : sample_words()) {
    SCOPED_TRACE(testing::Message() << "word " << word);
    auto const bits = set_bits(word);
    ASSERT_EQ(popcount(word), bits.size());
    ASSERT_EQ(folded::popcount(word), bits.size());
    if (bits.empty()) continue;
    ASSERT_EQ(lowest_bit(word), bits.front());
    ASSERT_EQ(highest_bit(word), bits.back());
    ASSERT_EQ(folded::lowest_bit(word), bits.front());
    ASSERT_EQ(folded::highest_bit(word), bits.back());
    auto const half = static_cast<u32>(word);
    ASSERT_EQ(popcount(half), set_bits(half).size());
    if (half == 0) continue;
    ASSERT_EQ(lowest_bit(half), set_bits(half).front());
    ASSERT_EQ(highest_bit(half), set_bits(half).back());
  }
}

TEST(Bits, NthBitIsTheOneWithNSetBitsBelowIt) {
  for (auto const word : sample_words()) {
    auto const bits = set_bits(word);
    for (u32 k = 0; k < bits.size(); ++k) {
      ASSERT_EQ(nth_bit(word, k), bits[k]) << "word " << word << ", k " << k;
      if (bits[k] >= 32) continue;
      ASSERT_EQ(nth_bit(static_cast<u32>(word), k), bits[k]) << "word " << word << ", k " << k;
    }
  }
}

TEST(Bits, LowestBitsAreTheFirstOrAll) {
  for (auto const word : sample_words()) {
    auto const bits = set_bits(word);
    u64 expected = 0;
    for (u32 count = 0; count <= 65; ++count) {
      ASSERT_EQ(lowest_bits(word, count), expected) << "word " << word << ", count " << count;
      if (count < bits.size()) expected |= u64{1} << bits[count];
    }
  }
}

TEST(Bits, RotateLeftBringsEachBitToItsPlace) {
  for (auto const word : sample_words()) {
    for (u32 const count : {0u, 1u, 31u, 32u, 63u, 64u, 65u, ~0u}) {
      u64 expected = 0;
      for (auto const bit : set_bits(word)) expected |= u64{1} << ((bit + count) % 64);
      ASSERT_EQ(rotate_left(word, count), expected) << "word " << word << ", count " << count;
    }
  }
}

TEST(Bits, FindRunIsTheLowestRunThatIsLongEnough) {
  for (auto const word : sample_words()) {
    for (u32 length = 1; length <= 65; ++length) {
      u32 expected = 64;
      for (u32 start = 64; length <= 64 && start-- > 0;) {
        auto const run = low_mask(length);
        if (start + length <= 64 && ((word >> start) & run) == run) expected = start;
      }
      ASSERT_EQ(find_run(word, length), expected) << "word " << word << ", length " << length;
    }
  }
}

TEST(Bits, LowMasksHaveAsManyBitsAsAsked) {
  EXPECT_EQ(low_mask(0), 0u);
  EXPECT_EQ(low_mask(64), ~u64{0});
  EXPECT_EQ(low_mask32(0), 0u);
  EXPECT_EQ(low_mask32(32), ~u32{0});
  for (u32 bits = 1; bits < 64; ++bits) EXPECT_EQ(low_mask(bits), low_mask(bits - 1) * 2 + 1);
  for (u32 bits = 1; bits < 32; ++bits) EXPECT_EQ(low_mask32(bits), low_mask(bits));
}

TEST(Bits, LogarithmsBracketTheirValue) {
  for (u32 e = 0; e < 64; ++e) {
    auto const power = u64{1} << e;
    EXPECT_TRUE(is_power_of_two(power));
    EXPECT_EQ(log2_floor(power), e);
    EXPECT_EQ(log2_ceil(power), e);
    if (e < 2) continue;
    EXPECT_FALSE(is_power_of_two(power - 1));
    EXPECT_EQ(log2_floor(power - 1), e - 1);
    EXPECT_EQ(log2_ceil(power - 1), e);
    EXPECT_EQ(log2_floor(power + 1), e);
    EXPECT_EQ(log2_ceil(power + 1), e + 1 < 64 ? e + 1 : 64);
  }
  EXPECT_FALSE(is_power_of_two(0));
}

TEST(Bits, AlignmentRoundsToTheNearestMultiple) {
  for (u64 value = 0; value < 300; ++value) {
    for (u64 alignment = 1; alignment <= 64; alignment *= 2) {
      EXPECT_EQ(align_down(value, alignment), value / alignment * alignment);
      EXPECT_EQ(align_up(value, alignment), (value + alignment - 1) / alignment * alignment);
    }
  }
  EXPECT_EQ(align_up((u64{141} << 30) - 1, u64{1} << 20), u64{141} << 30);
  EXPECT_EQ(div_ceil(~u64{0}, 2), u64{1} << 63);
  EXPECT_EQ(div_ceil(0, 7), 0u);
  EXPECT_EQ(div_ceil(7, 7), 1u);
  EXPECT_EQ(div_ceil(8, 7), 2u);
}

static_assert(popcount(0xf0f0u) == 8 && popcount(~u64{0}) == 64);
static_assert(lowest_bit(0x50u) == 4 && highest_bit(u64{0x50} << 40) == 46);
static_assert(nth_bit(0b1011'0000u, 2) == 7 && nth_bit(~u64{0}, 40) == 40);
static_assert(lowest_bits(0b1011'0000, 2) == 0b0011'0000 && find_run(0b1011'0000, 2) == 4);

}  // namespace
