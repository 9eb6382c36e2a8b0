// SPDX-License-Identifier: Apache-2.0
// Ratios of allocators' times for one job, and the first thing that is wrong.
#include "commands/comparison.hpp"

#include <gmock/gmock.h>

namespace warpheap::tool { namespace {

using testing::IsEmpty;
using testing::SizeIs;

bench::result measured(char const* allocator, char const* operation, u64 tuples, double microseconds) {
  bench::result made{.scenario = "join", .allocator = allocator, .operation = operation};
  made.parameters = {{"tuples", tuples}};
  made.times_us = {microseconds};
  return made;
}

TEST(Comparison, SetsEachBesideTheFirstOfItsParameters) {
  std::vector<bench::result> const results{measured("direct", "count", 100, 1), measured("direct", "join", 100, 10),
                                           measured("other", "count", 100, 5),  measured("other", "join", 100, 20),
                                           measured("direct", "join", 200, 50), measured("other", "join", 200, 25)};
  auto const found = ratios(results, "join");
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(&found[0].made, &results[3]);
  EXPECT_EQ(&found[0].first, &results[1]);
  EXPECT_DOUBLE_EQ(found[0].of_first, 2);
  EXPECT_EQ(&found[1].made, &results[5]);
  EXPECT_EQ(&found[1].first, &results[4]);
  EXPECT_DOUBLE_EQ(found[1].of_first, 0.5);
}

TEST(Comparison, SaysNothingOfWhatIsWrongOrWasSkipped) {
  auto wrong = measured("wrong", "join", 100, 20), skipped = measured("skipped", "join", 100, 20);
  wrong.fault = "a pair is missing";
  skipped.skipped = "is too large";
  skipped.times_us = {};
  EXPECT_THAT(ratios({measured("direct", "join", 100, 10), wrong, skipped}, "join"), IsEmpty());
  EXPECT_THAT(ratios({wrong, measured("direct", "join", 100, 10)}, "join"), IsEmpty());
  EXPECT_THAT(ratios({skipped, measured("direct", "join", 100, 10)}, "join"), IsEmpty());
}

TEST(Comparison, NotesTheFirstFault) {
  auto wrong = measured("wrong", "join", 100, 20);
  wrong.fault = "a pair is missing";
  comparison all;
  all.add({measured("direct", "join", 100, 10)});
  EXPECT_EQ(all.fault, "");
  all.add({measured("direct", "join", 200, 10), wrong});
  wrong.fault = "another one";
  all.add({wrong});
  EXPECT_EQ(all.fault, "wrong: a pair is missing");
  EXPECT_THAT(all.results, SizeIs(4));
}

}}  // namespace warpheap::tool
