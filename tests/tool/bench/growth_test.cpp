// growth: what it measures on the host backend.
#include <gmock/gmock.h>

#include "backend/backend.hpp"
#include "tests/tool/bench/small_request_fixture.hpp"

namespace warpheap::tool {
namespace {

TEST(Growth, MeasuresEveryOperationSoundly) {
  auto const on = make_host_backend();
  auto asked = small_request();
  std::vector<std::string> operations;
  for (auto const& row : on->bench_floor("growth", asked)) {
    operations.push_back(row.operation);
    EXPECT_EQ(row.fault, "") << row.operation;
    EXPECT_EQ(row.failures, 0u) << row.operation;
    EXPECT_EQ(row.times_us.size(), asked.repeat) << row.operation;
    EXPECT_GT(row.operations, 0) << row.operation;
  }
  EXPECT_THAT(operations,
              testing::ElementsAre("grow", "trim", "poll", "grown malloc", "grown free", "grown first_malloc",
                                   "fixed malloc", "fixed free", "fixed first_malloc", "waiting malloc"));
}

TEST(Growth, UsesTheSizeThatIsAsked) {
  auto asked = small_request();
  asked.sizes = {256};
  auto const rows = make_host_backend()->bench_floor("growth", asked);
  EXPECT_EQ(rows.at(3).parameters.front(), (std::pair<std::string, u64>{"bytes", 256}));
}

}  // namespace
}  // namespace warpheap::tool
