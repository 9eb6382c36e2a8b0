// SPDX-License-Identifier: Apache-2.0
// hash_map: rows for every number of keys and every size of the map, and a map without memory is
// not called sound.
#include "scenarios/hash_map.hpp"

#include <gmock/gmock.h>

#include "backend/backend.hpp"
#include "tests/tool/scenarios/small_request_fixture.hpp"

namespace warpheap::tool { namespace {

using testing::HasSubstr;
using testing::SizeIs;

TEST(HashMapScenario, MeasuresEveryNumberOfKeysByLoadAndInAMapThatGrows) {
  auto asked = small_request();
  asked[options::workers] = {1000, 1500};
  auto const rows = baseline_on_host("hash_map", asked);
  ASSERT_THAT(rows, SizeIs(2 * 3 * 4));
  char const* const operations[] = {"insert", "find", "find absent", "compact"};
  for (size_t i = 0; i < rows.size(); ++i) {
    auto const& row = rows[i];
    EXPECT_EQ(row.fault, "");
    EXPECT_EQ(row.operation, operations[i % 4]);
    EXPECT_THAT(row.times_us, SizeIs(2));
    EXPECT_EQ(row.operations, i < 12 ? 1000 : 1500);
    if (i % 4 != 0) continue;
    ASSERT_EQ(row.figures.front().first, "levels");
    bool const grows = i / 4 % 3 == 2;
    EXPECT_EQ(row.figures.front().second > 4, grows);
  }
}

TEST(HashMapScenario, FindsFaultWithAMapThatGetsNoMemory) {
  auto asked = small_request();
  asked.pool_bytes = u64{2} << 20;
  asked[options::workers] = {140'000};
  auto const rows = baseline_on_host("hash_map", asked);
  ASSERT_THAT(rows, SizeIs(4));
  EXPECT_THAT(rows.front().fault, HasSubstr("insertions or searches went wrong"));
}

}}  // namespace warpheap::tool
