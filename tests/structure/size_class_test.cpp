// SPDX-License-Identifier: Apache-2.0
// Size classes against a list made the slow way.
#include <gtest/gtest.h>

#include <vector>
#include <warpheap/structure/size_class.hpp>

namespace {

using namespace warpheap;

/// 16, 32, 48, 64, and then each doubling in four steps.
std::vector<u32> listed_classes() {
  std::vector<u32> bytes{16, 32, 48, 64};
  for (u32 from = 64; from < max_class_bytes; from *= 2) {
    for (u32 step = 1; step <= 4; ++step) bytes.push_back(from + step * from / 4);
  }
  return bytes;
}

TEST(SizeClass, AreTheListedSizes) {
  auto const listed = listed_classes();
  ASSERT_EQ(listed.size(), size_class_count);
  for (u32 c = 0; c < size_class_count; ++c) {
    EXPECT_EQ(class_bytes(c), listed[c]) << "class " << c;
    EXPECT_EQ(class_bytes(c) % min_class_bytes, 0u) << "class " << c;
    EXPECT_EQ(class_units(c) << class_unit_log2(c), listed[c]) << "class " << c;
  }
}

TEST(SizeClass, EveryRequestGetsTheSmallestThatHoldsIt) {
  u32 smallest = 0;
  for (u32 bytes = 1; bytes <= max_class_bytes; ++bytes) {
    if (class_bytes(smallest) < bytes) ++smallest;
    ASSERT_EQ(size_class_of(bytes), smallest) << bytes << " bytes";
    ASSERT_EQ(class_bytes_for(bytes), class_bytes(smallest)) << bytes << " bytes";
  }
}

TEST(SizeClass, APowerOfTwoHasAClassOfItsOwn) {
  for (u32 bytes = min_class_bytes; bytes <= max_class_bytes; bytes *= 2) {
    EXPECT_EQ(class_bytes(size_class_of(bytes)), bytes);
  }
}

TEST(SizeClass, CountsTheClassesUpToASize) {
  u32 count = 0;
  for (u32 bytes = 0; bytes <= max_class_bytes; ++bytes) {
    if (count < size_class_count && class_bytes(count) <= bytes) ++count;
    ASSERT_EQ(class_count_up_to(bytes), count) << bytes << " bytes";
  }
  EXPECT_EQ(class_count_up_to(u64{141} << 30), size_class_count);
}

TEST(SizeClass, AnAlignedRequestGetsTheFirstThatItsAlignmentDivides) {
  for (u32 alignment = 1; alignment <= max_class_bytes; alignment *= 2) {
    u32 first = 0;
    // A class answers alike for all requests above the class below it: its ends and its middle are
    // enough.
    for (u32 c = 0; c < size_class_count; ++c) {
      auto const below = c == 0 ? 0 : class_bytes(c - 1);
      for (u32 bytes : {below + 1, (below + class_bytes(c)) / 2, class_bytes(c)}) {
        for (first = c; class_bytes(first) % alignment != 0;) ++first;
        ASSERT_EQ(aligned_size_class(alignment, bytes), first) << bytes << " bytes aligned to " << alignment;
      }
    }
  }
}

TEST(SizeClass, BlockIndexDividesAtTheEdgesOfEveryBlock) {
  constexpr u32 bound = 1u << 26;
  for (u32 c = 0; c < size_class_count; ++c) {
    auto const bytes = class_bytes(c);
    for (u32 index = 0, start = 0; start < bound; ++index, start += bytes) {
      ASSERT_EQ(block_index(c, start), index) << "class " << c << ", offset " << start;
      auto const last = start + bytes - 1 < bound ? start + bytes - 1 : bound - 1;
      ASSERT_EQ(block_index(c, last), index) << "class " << c << ", offset " << last;
    }
  }
}

TEST(SizeClass, BlockCountDividesContainersOfEverySize) {
  for (u32 log2 = 4; log2 <= 21; ++log2)
    for (u32 c = 0; c < size_class_count && class_bytes(c) <= 1u << log2; ++c)
      ASSERT_EQ(block_count(c, log2), (1u << log2) / class_bytes(c)) << "class " << c << ", 2^" << log2 << " bytes";
}

/// Whether every request above 64 bytes wastes less than one part in `parts` of its block.
constexpr bool wastes_less_than_one_in(u32 parts) {
  for (u32 c = size_class_of(65); c < size_class_count; ++c) {
    auto const worst = class_bytes(c - 1) + 1;
    if ((class_bytes(c) - worst) * parts >= class_bytes(c)) return false;
  }
  return true;
}
static_assert(wastes_less_than_one_in(5) && !wastes_less_than_one_in(6));

}  // namespace
