// SPDX-License-Identifier: Apache-2.0
// The breadth-first search on the host: distances of a graph that is small enough to see them.
#include "workloads/graph/search.hpp"

#include <gmock/gmock.h>

namespace warpheap::tool { namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// 0 -> 1 -> 2 -> 3, 0 -> 2, a loop at 1, and 4 -> 0.
reference_graph small_graph() {
  reference_graph made;
  made.insert({0x0'0000'0001, 0x0'0000'0002, 0x1'0000'0001, 0x1'0000'0002, 0x2'0000'0003, 0x4'0000'0000});
  return made;
}

TEST(Search, FindsTheDistanceOfEveryVertexThatAPathLeadsTo) {
  auto const made = search(small_graph(), 6, 0);
  EXPECT_THAT(made.levels, ElementsAre(0, 1, 1, 2, unreached, unreached));
  EXPECT_EQ(made.vertices, 4u);
  EXPECT_EQ(made.entries, 5u);
  EXPECT_EQ(made.depth, 2u);
}

TEST(Search, FromAVertexWithoutNeighboursFindsThatOne) {
  auto const made = search(small_graph(), 6, 5);
  EXPECT_THAT(made.levels, ElementsAre(unreached, unreached, unreached, unreached, unreached, 0));
  EXPECT_EQ(made.vertices, 1u);
  EXPECT_EQ(made.entries, 0u);
  EXPECT_EQ(made.depth, 0u);
}

TEST(Search, TellsTheFirstLevelThatDiffers) {
  auto const wanted = search(small_graph(), 6, 0);
  auto levels = wanted.levels;
  EXPECT_THAT(difference_of_levels(wanted, levels), IsEmpty());
  levels[4] = 3;
  EXPECT_EQ(difference_of_levels(wanted, levels),
            "vertex 4 is at level 3 in the search, and unreached in the reference");
  levels[3] = unreached;
  EXPECT_EQ(difference_of_levels(wanted, levels),
            "vertex 3 is unreached in the search, and at level 2 in the reference");
  levels.pop_back();
  EXPECT_THAT(difference_of_levels(wanted, levels), HasSubstr("levels of 5 vertices, and there are 6"));
}

}}  // namespace warpheap::tool
