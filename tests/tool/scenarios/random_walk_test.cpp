// SPDX-License-Identifier: Apache-2.0
// random_walk measures what theory says, and utilisation what was asked for and is held.
#include <gmock/gmock.h>

#include <map>

#include "backend/backend.hpp"
#include "measure/correlation.hpp"
#include "scenarios/random_walk.hpp"
#include "scenarios/utilisation.hpp"
#include "tests/tool/measured_fixture.hpp"
#include "tests/tool/scenarios/small_request_fixture.hpp"
#include "warpheap/all.hpp"

namespace warpheap::tool { namespace {

using testing::HasSubstr;

/// The tolerance is the spread of 320 threads' steps: their mean varies by a seventeenth, and five
/// times that is allowed.
TEST(WalkScenarios, RandomWalkTakesTheStepsOfTheTheory) {
  // The most steps of ten warps vary more than that, from schedule to schedule.
  host::scoped_execution const run{{.mode = host::execution_mode::deterministic, .seed = 1}};
  bench::request asked;
  asked.pool_bytes = u64{32} << 20;  // 131,072 pages
  asked.repeat = 1;
  asked[options::workers] = {320, 100'000};
  auto const rows = bench::random_walk(asked);
  // 100,000 threads are more than there are free pages, whatever the share.
  ASSERT_THAT(rows, testing::SizeIs(5 * 4));
  for (auto const& row : rows) {
    auto figures = figures_of(row);
    EXPECT_EQ(row.fault, "") << row.primitive;
    EXPECT_NEAR(figures["tas"] / figures["predicted_tas"], 1, 0.35) << row.primitive;
    EXPECT_GE(figures["was"], figures["tas"]) << row.primitive;
    if (row.primitive == "corw") {
      EXPECT_DOUBLE_EQ(figures["was"], figures["tas"]) << "a warp's lanes take the same steps";
    }
    if (row.primitive == "queue") {
      EXPECT_DOUBLE_EQ(figures["tas"], 160.5);
      EXPECT_DOUBLE_EQ(figures["was"], 176) << "the last places of ten warps";
      EXPECT_DOUBLE_EQ(figures["predicted_was"], 176);
    }
    EXPECT_EQ(figures.count("collisions"), row.primitive != "queue");
    EXPECT_EQ(figures["free_median_us"] > 0, row.primitive != "queue") << "nothing is given back to the queue";
    EXPECT_EQ(figures.count("predicted_collisions"), row.primitive == "rw");
    if (row.primitive == "rw_bitmap") {
      EXPECT_NEAR(figures["rw_was_over_this"] / figures["predicted_rw_was_over_this"], 1, 0.5) << row.primitive;
      EXPECT_NEAR(figures["rw_over_this"] / figures["predicted_rw_over_this"], 1, 0.35) << row.primitive;
    }
  }
  EXPECT_GT(figures_of(rows[17])["rw_over_this"], 20) << "it tends to the 32 pages of a word";
}

TEST(WalkScenarios, RandomWalkCorrelatesStepsAndTimesInTheLastRowOfEachKind) {
  bench::request asked;
  asked.pool_bytes = u64{32} << 20;
  asked.repeat = 3;
  asked[options::workers] = {64, 320};
  auto const rows = bench::random_walk(asked);
  ASSERT_THAT(rows, testing::SizeIs(2 * 5 * 4));
  for (size_t i = 0; i < rows.size(); ++i) {
    auto figures = figures_of(rows[i]);
    for (std::string const steps : {"tas", "was"}) {
      auto const name = steps + "_time_correlation";
      EXPECT_EQ(figures.count(name), i >= rows.size() - 4) << i;
      EXPECT_LE(figures[name + "_least"], figures[name]);
      EXPECT_GE(figures[name + "_most"], figures[name]);
    }
  }
  std::vector<std::pair<double, double>> corw;
  for (auto const& row : rows)
    if (row.primitive == "corw") corw.emplace_back(figures_of(row)["was"], bench::median(row.times_us));
  ASSERT_THAT(corw, testing::SizeIs(10));
  EXPECT_DOUBLE_EQ(figures_of(rows[38])["was_time_correlation"], bench::correlation_of(corw)->coefficient);
  asked[options::workers] = {64};
  // Whatever is free, the threads have the same places in a queue: steps do not rise there.
  EXPECT_EQ(figures_of(bench::random_walk(asked).back()).count("tas_time_correlation"), 0u);
}

TEST(WalkScenarios, RandomWalkTakesSharesOfFreePagesInAnyOrder) {
  bench::request asked;
  asked.pool_bytes = u64{1} << 20;  // 4,096 pages
  asked.repeat = 1;
  asked[options::workers] = {40};
  asked[options::page_shares] = {0.01, 1, 0.25};  // a hundredth are but 40
  auto const rows = bench::random_walk(asked);
  ASSERT_THAT(rows, testing::SizeIs(3 * 4));
  u64 const free[] = {4096, 1024, 40};
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].fault, "");
    EXPECT_THAT(rows[i].parameters, testing::Contains(testing::Pair("free_pages", free[i / 4])));
  }
}

TEST(WalkScenarios, CorrelationIsPearsonsWithFishersInterval) {
  // The first of Anscombe's four sets.
  auto const found = bench::correlation_of({{10, 8.04},
                                            {8, 6.95},
                                            {13, 7.58},
                                            {9, 8.81},
                                            {11, 8.33},
                                            {14, 9.96},
                                            {6, 7.24},
                                            {4, 4.26},
                                            {12, 10.84},
                                            {7, 4.82},
                                            {5, 5.68}});
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->coefficient, 0.81642, 1e-5);
  EXPECT_NEAR(found->least, 0.4244, 1e-4);
  EXPECT_NEAR(found->most, 0.9507, 1e-4);
  auto const falling = bench::correlation_of({{1, 8}, {2, 6}, {3, 4}, {4, 2}});
  ASSERT_TRUE(falling);
  EXPECT_DOUBLE_EQ(falling->coefficient, -1);
  EXPECT_NEAR(falling->least, -1, 1e-6);
  EXPECT_NEAR(falling->most, -1, 1e-6);
  EXPECT_FALSE(bench::correlation_of({{1, 2}, {2, 3}, {3, 5}})) << "three pairs have no interval";
  EXPECT_FALSE(bench::correlation_of({{1, 2}, {1, 3}, {1, 5}, {1, 8}}));
  EXPECT_FALSE(bench::correlation_of({{1, 2}, {2, 2}, {3, 2}, {4, 2}}));
}

TEST(WalkScenarios, RandomWalkNamesWhatIsWrongWithPages) {
  int one = 0, other = 0;
  EXPECT_EQ(bench::fault_of_pages({&one, &other}), "");
  EXPECT_THAT(bench::fault_of_pages({&one, nullptr}), HasSubstr("got no page"));
  EXPECT_THAT(bench::fault_of_pages({&one, &other, &one}), HasSubstr("two owners"));
}

TEST(WalkScenarios, UtilisationCountsWhatWasAskedFor) {
  bench::request asked;
  asked.pool_bytes = u64{2} << 20;
  asked.repeat = 2;
  asked[options::sizes] = {64, 1000, 1008, 4096, 100'000};
  asked[options::ranges] = {{16, 512}};
  auto const rows = run_on_host("utilisation", "rw_malloc", asked);
  ASSERT_THAT(rows, testing::SizeIs(6));
  for (auto const& row : rows) {
    EXPECT_EQ(row.fault, "");
    EXPECT_EQ(row.times_us.size(), 2u);
  }
  EXPECT_DOUBLE_EQ(figures_of(rows[0])["least_utilisation"], 1);
  // 63 units each, and the last units of the pool are none.
  EXPECT_DOUBLE_EQ(figures_of(rows[1])["utilisation"], 2080 * 1000 / double(asked.pool_bytes));
  EXPECT_DOUBLE_EQ(figures_of(rows[2])["utilisation"], 2080 * 1008 / double(asked.pool_bytes));
  EXPECT_DOUBLE_EQ(figures_of(rows[3])["utilisation"], 1);
  EXPECT_GT(figures_of(rows[4])["least_utilisation"], 0.95);
  EXPECT_GT(figures_of(rows[5])["least_utilisation"], 0.7);
  EXPECT_LT(figures_of(rows[5])["utilisation"], 1);
}

TEST(WalkScenarios, UtilisationSkipsWhatIsNeverServed) {
  bench::request asked;
  asked.pool_bytes = u64{2} << 20;
  asked.repeat = 1;
  asked[options::sizes] = {8192, 8193};
  asked[options::ranges] = {{16, 10'000}};
  auto const rows = run_on_host("utilisation", "corw", asked);
  ASSERT_THAT(rows, testing::SizeIs(3));
  EXPECT_DOUBLE_EQ(figures_of(rows[0])["utilisation"], 1);
  EXPECT_THAT(rows[1].skipped, HasSubstr("at most 8192"));
  EXPECT_THAT(rows[2].skipped, HasSubstr("at most 8192"));
}

}}  // namespace warpheap::tool
