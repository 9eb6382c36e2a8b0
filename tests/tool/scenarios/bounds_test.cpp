// SPDX-License-Identifier: Apache-2.0
// bounds: what it measures on the host backend, and that it finds broken allocators.
#include "scenarios/bounds.hpp"

#include <gmock/gmock.h>

#include "backend/backend.hpp"
#include "scenarios/scenario.hpp"
#include "tests/tool/scenarios/broken_allocators_fixture.hpp"
#include "tests/tool/scenarios/small_request_fixture.hpp"
#include "warpheap/warpheap.hpp"

namespace warpheap::tool { namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(Bounds, MeasuresTheDefaultAllocatorAndOnTheHostWithoutABound) {
  auto const on = make_host_backend();
  auto asked = small_request();
  asked[options::sizes] = {100};
  asked[options::ranges] = {{16, 300}};
  EXPECT_FALSE(bench::scenario_called("bounds", *on).measures_allocators());
  auto const rows = bench::scenario_called("bounds", *on).baseline(asked);
  ASSERT_THAT(rows, SizeIs(3 + 4));
  char const* const operations[] = {"malloc", "free", "churn"};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(rows[i].operation, operations[i]);
    EXPECT_EQ(rows[i].allocator, "slab_bitmap");
    EXPECT_THAT(rows[i].fault, IsEmpty());
    EXPECT_THAT(rows[i].times_us, SizeIs(2));
    EXPECT_EQ(rows[i].failures, 0u);
    EXPECT_THAT(rows[i].parameters, testing::Contains(std::pair{std::string{"most_bytes"}, u64{i < 2 ? 100u : 300u}}));
  }
  EXPECT_EQ(rows[0].operations, 500);
  EXPECT_GT(rows[2].operations, 500);
  for (size_t i = 3; i < rows.size(); ++i) EXPECT_THAT(rows[i].skipped, HasSubstr("no registers to bound"));
}

TEST(Bounds, EndsWhereItIsTold) {
  auto asked = small_request();
  u64 told = 0;
  asked.proceed = [&](std::string const&, u64 done, u64) {
    told = done;
    return done < 1;
  };
  EXPECT_THAT(baseline_on_host("bounds", asked), SizeIs(3)) << "the rows without a bound";
  EXPECT_EQ(told, 1u) << "and nothing is asked after the end";
}

TEST(Bounds, FindsBrokenAllocatorsAndStopsThere) {
  auto const fault_of = [](std::vector<bench::result> const& rows) {
    for (auto const& row : rows)
      if (row.skipped.empty()) EXPECT_THAT(row.fault, testing::Not(IsEmpty())) << row.operation;
    return rows.front().fault;
  };
  EXPECT_THAT(fault_of(bench::bounds(broken<overlapping>(), small_request())), HasSubstr("blocks overlap another"));
  EXPECT_EQ(fault_of(bench::bounds(broken<misaligning>(), small_request())), "500 blocks are not aligned as promised");
  EXPECT_THAT(fault_of(bench::bounds(broken<leaking>(), small_request())), HasSubstr("blocks lost"));
}

}}  // namespace warpheap::tool
