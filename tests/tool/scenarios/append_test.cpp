// SPDX-License-Identifier: Apache-2.0
// append: what it measures on the host backend, and that it finds lists that lose elements.
#include "scenarios/append.hpp"

#include <gmock/gmock.h>

#include "tests/tool/measured_fixture.hpp"
#include "tests/tool/scenarios/small_request_fixture.hpp"

namespace warpheap::tool { namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Pair;
using testing::SizeIs;

TEST(Append, MeasuresThreeSubjectsOnOneListAndOnMany) {
  auto asked = small_request();
  asked[options::threads] = 8000;
  auto const rows = bench::append_rows(asked);
  ASSERT_THAT(rows, SizeIs(2 * 3 * 4));
  for (auto const& row : rows) {
    EXPECT_EQ(row.fault, "") << row.primitive << " " << row.operation;
    EXPECT_EQ(row.operations, 8000) << row.primitive << " " << row.operation;
    EXPECT_THAT(row.times_us, SizeIs(asked.repeat)) << row.primitive << " " << row.operation;
  }
  auto const bytes = [&](size_t i) { return figure(rows[i], "memory_bytes"); };
  constexpr size_t on_many = 12, two_passes = 4, fixed_bound = 8;
  EXPECT_GE(bytes(0), 8000 * 16);
  EXPECT_THAT(rows[on_many].parameters, Contains(Pair("largest_list", 4000u)));
  EXPECT_LT(bytes(on_many), 2 * bytes(on_many + two_passes)) << "pages take half as much again, and directories";
  EXPECT_GT(bytes(on_many + fixed_bound), 10 * bytes(on_many)) << "64 lists of 4000";
}

TEST(Append, ChoosesAListForEachElement) {
  for (u64 const elements : {1u, 2u, 7u, 8000u})
    for (u32 const lists : {1u, 3u, 64u, 4096u}) {
      bench::list_choice const choice{elements, lists};
      ASSERT_THAT(choice.of, SizeIs(elements));
      EXPECT_LT(*std::max_element(choice.of.begin(), choice.of.end()), lists);
      EXPECT_GE(choice.largest(), elements / 2 / (lists / 256 + 1)) << elements << " elements of " << lists << " lists";
    }
}

/// Does not fill its lists again.
struct stays_cleared : bench::append_buffer_subject {
  using bench::append_buffer_subject::append_buffer_subject;
  void steady() { destroy(); }
};

TEST(Append, FindsListsThatLoseElements) {
  bench::list_choice const choice{500, 64};
  stays_cleared subject{choice};
  auto const rows = bench::appending_rows<stays_cleared>{subject, choice, 2}.measure();
  EXPECT_THAT(rows.front().fault, HasSubstr("other elements than those appended"));
}

}}  // namespace warpheap::tool
