// random_walk measures what theory says, and utilisation what was asked for and is held.
#include <gmock/gmock.h>

#include <map>

#include "bench/random_walk.hpp"
#include "bench/utilisation.hpp"
#include "warpheap/warpheap.hpp"

namespace warpheap::tool {
namespace {

using testing::HasSubstr;

std::map<std::string, double> figures_of(bench::result const& row) { return {row.figures.begin(), row.figures.end()}; }

/// Within what 320 threads' steps vary by: their mean by a seventeenth, and five times that is allowed.
TEST(WalkScenarios, RandomWalkTakesTheStepsOfTheTheory) {
  bench::request asked;
  asked.pool_bytes = u64{32} << 20;  // 131,072 pages
  asked.repeat = 1;
  asked.workers = {320, 100'000};
  auto const rows = bench::random_walk(asked);
  // 100,000 threads are more than there are free pages, whatever the share.
  ASSERT_THAT(rows, testing::SizeIs(4 * 4));
  for (auto const& row : rows) {
    auto figures = figures_of(row);
    EXPECT_EQ(row.fault, "") << row.primitive;
    EXPECT_NEAR(figures["tas"] / figures["predicted_tas"], 1, 0.35) << row.primitive;
    EXPECT_GE(figures["was"], figures["tas"]) << row.primitive;
    if (row.primitive == "corw") {
      EXPECT_DOUBLE_EQ(figures["was"], figures["tas"]) << "a warp's lanes take the same steps";
    }
    if (row.primitive == "rw_bitmap") {
      EXPECT_NEAR(figures["rw_over_this"] / figures["predicted_rw_over_this"], 1, 0.35) << row.primitive;
    }
  }
  EXPECT_GT(figures_of(rows[13])["rw_over_this"], 20) << "it tends to the 32 pages of a word";
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
  asked.sizes = {64, 1000, 1008, 4096, 100'000};
  asked.ranges = {{16, 512}};
  auto const rows = bench::utilisation(bench::contender<rw_malloc_allocator>{"rw_malloc", true}, asked);
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
  asked.sizes = {8192, 8193};
  asked.ranges = {{16, 10'000}};
  auto const rows = bench::utilisation(bench::contender<corw_allocator>{"corw", true}, asked);
  ASSERT_THAT(rows, testing::SizeIs(3));
  EXPECT_DOUBLE_EQ(figures_of(rows[0])["utilisation"], 1);
  EXPECT_THAT(rows[1].skipped, HasSubstr("at most 8192"));
  EXPECT_THAT(rows[2].skipped, HasSubstr("at most 8192"));
}

}  // namespace
}  // namespace warpheap::tool
