// SPDX-License-Identifier: Apache-2.0
// graph_scaling: what it measures on the host backend, where all members are on one device.
#include <gmock/gmock.h>

#include "backend/backend.hpp"
#include "scenarios/graph_scaling.hpp"
#include "tests/tool/measured_fixture.hpp"
#include "tests/tool/scenarios/small_request_fixture.hpp"

namespace warpheap::tool { namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::vector<bench::result> scaled(std::vector<int> devices, u64 pool_bytes = 4 * mebibyte) {
  auto asked = small_request();
  asked[options::scale] = 7;
  asked[options::gpus] = std::move(devices);
  asked.pool_bytes = pool_bytes;
  return baseline_on_host("graph_scaling", asked);
}

TEST(GraphScaling, HasARowForEveryNumberOfMembers) {
  std::vector<std::string> operations;
  for (auto const& row : scaled({0, 0, 0})) {
    auto const parameter = [&](size_t i) { return row.parameters.at(i).second; };
    operations.push_back(row.operation + " " + std::to_string(parameter(0)) + " " + std::to_string(parameter(2)));
    EXPECT_THAT(row.fault, IsEmpty());
    EXPECT_THAT(row.times_us, SizeIs(2));
    EXPECT_GT(row.operations, 500);
    EXPECT_EQ(row.failures, 0u);
    EXPECT_THAT(row.parameters, Contains(std::pair<std::string, u64>{"devices", 1}));
    if (parameter(0) == 1) EXPECT_EQ(figure(row, "speedup"), 1);
    else EXPECT_GT(figure(row, "speedup"), 0);
    if (row.operation.ends_with("build"))
      for (auto const* const name : {"send_us", "apply_us", "free_us"}) EXPECT_GT(figure(row, name), 0);
  }
  EXPECT_THAT(operations, ElementsAre("strong build 1 7", "strong search 1 7", "strong build 2 7", "strong search 2 7",
                                      "strong build 3 7", "strong search 3 7", "weak build 1 7", "weak search 1 7",
                                      "weak build 2 8", "weak search 2 8"));
}

TEST(GraphScaling, HasTwoMembersOnTheOnlyDevice) {
  auto const rows = scaled({});
  ASSERT_THAT(rows, SizeIs(8));
  EXPECT_EQ(rows.back().parameters.at(0).second, 2u);
}

TEST(GraphScaling, HasNoTimesOfAGraphThatDoesNotFitAndStopsThere) {
  auto asked = small_request();
  asked[options::scale] = 14;
  asked.pool_bytes = mebibyte;
  auto const rows = baseline_on_host("graph_scaling", asked);
  ASSERT_THAT(rows, SizeIs(2));
  for (auto const& row : rows) {
    EXPECT_THAT(row.fault, HasSubstr("were lost"));
    EXPECT_THAT(row.times_us, IsEmpty());
  }
}

}}  // namespace warpheap::tool
