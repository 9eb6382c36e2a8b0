// SPDX-License-Identifier: Apache-2.0
// Pages of growing size: every element has a place of its own, up to 2^32.
#include <gtest/gtest.h>

#include <warpheap/container/geometric_pages.hpp>

namespace {

using namespace warpheap;

template <class Pages>
class PagesFrom : public testing::Test {};
using first_pages = testing::Types<geometric_pages<1>, geometric_pages<2>, geometric_pages<32>, geometric_pages<4096>,
                                   geometric_pages<1u << 30>>;
TYPED_TEST_SUITE(PagesFrom, first_pages);

TYPED_TEST(PagesFrom, HaveElementsOneAfterTheOther) {
  u32 page = 0, index = 0;
  for (u32 i = 0; i < 300'000; ++i) {
    auto const at = TypeParam::place_of(i);
    ASSERT_EQ(at.page, page) << i;
    ASSERT_EQ(at.index, index) << i;
    if (++index < TypeParam::size_of(page)) continue;
    ++page;
    index = 0;
  }
}

TYPED_TEST(PagesFrom, MeetAtTheirEnds) {
  EXPECT_EQ(TypeParam::first_of(0), 0u);
  for (u32 page = 0; page < TypeParam::count; ++page) {
    u64 const first = TypeParam::first_of(page), behind = TypeParam::first_of(page + 1);
    ASSERT_EQ(behind - first, TypeParam::size_of(page)) << page;
    for (u64 const i : {first, first + (behind - first) / 2, behind - 1}) {
      auto const at = TypeParam::place_of(static_cast<u32>(i));
      ASSERT_EQ(at.page, page) << i;
      ASSERT_EQ(at.index, i - first) << i;
    }
  }
  EXPECT_EQ(TypeParam::first_of(TypeParam::count), TypeParam::elements);
}

// The last page has just been begun.
TYPED_TEST(PagesFrom, HaveAboutAThirdOfTheirPlacesFreeAtMost) {
  for (u32 page = 0; page < TypeParam::count; ++page)
    EXPECT_LE(3 * u64{TypeParam::size_of(page)}, TypeParam::first_of(page + 1) + 2 * u64{TypeParam::size_of(0)})
        << page;
}

TEST(GeometricPages, AreFewForAllElements) {
  EXPECT_EQ(geometric_pages<32>::count, 52u);
  EXPECT_EQ(geometric_pages<4096>::count, 38u);
  EXPECT_EQ(geometric_pages<1u << 30>::count, 2u);
  EXPECT_EQ(geometric_pages<32>::elements, (u64{1} << 32) - 64);
}

}  // namespace
