// SPDX-License-Identifier: Apache-2.0
// Batches of edges, the graph that is made if none is given, and the reference that a dynamic graph
// is compared with.
#include "workloads/graph/edge_list.hpp"

#include <gmock/gmock.h>

#include <algorithm>

#include "workloads/graph/reference.hpp"

namespace warpheap::tool { namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

u64 key(u64 from, u64 to) { return from << 32 | to; }

TEST(EdgeList, AnUndirectedEdgeIsTwoEntriesAndALoopIsOne) {
  edge_list const graph{3, false, {{2, 0}, {1, 1}, {0, 2}}};
  EXPECT_THAT(keys_of(graph, 0, 3), ElementsAre(key(0, 2), key(1, 1), key(2, 0)));
  edge_list const directed{3, true, {{2, 0}, {2, 0}}};
  EXPECT_THAT(keys_of(directed, 0, 2), ElementsAre(key(2, 0)));
}

TEST(EdgeList, GroupsHaveOneVertexEachAndCoverAllTargets) {
  auto const groups = group_by_vertex({key(0, 1), key(0, 5), key(3, 0), key(7, 7)});
  EXPECT_THAT(groups.vertices, ElementsAre(0, 3, 7));
  EXPECT_THAT(groups.first, ElementsAre(0, 2, 3, 4));
  EXPECT_THAT(groups.targets, ElementsAre(1, 5, 0, 7));
  EXPECT_THAT(group_by_vertex({}).vertices, IsEmpty());
}

TEST(EdgeList, RmatIsTheSameForASeedAndHasHubs) {
  auto const graph = make_rmat(10, 16, 5), again = make_rmat(10, 16, 5), other = make_rmat(10, 16, 6);
  auto const same = [](edge one, edge two) { return one.from == two.from && one.to == two.to; };
  EXPECT_EQ(graph.vertices, 1024u);
  ASSERT_EQ(graph.edges.size(), 16384u);
  EXPECT_TRUE(std::equal(graph.edges.begin(), graph.edges.end(), again.edges.begin(), same));
  EXPECT_FALSE(std::equal(graph.edges.begin(), graph.edges.end(), other.edges.begin(), same));
  std::vector<u32> degree(1024);
  for (auto const& each : graph.edges) ++degree[each.from];
  EXPECT_GT(*std::max_element(degree.begin(), degree.end()), 10 * 16u);
  EXPECT_GT(std::count(degree.begin(), degree.end(), 0u), 100);
}

class Reference : public testing::Test {
 protected:
  Reference() { graph.insert({key(0, 1), key(0, 2), key(2, 0)}); }
  reference_graph graph;
};

TEST_F(Reference, InsertsAndErasesSets) {
  graph.insert({key(0, 1), key(1, 0)});
  graph.erase({key(0, 2), key(9, 9)});
  EXPECT_THAT(graph.parts(), ElementsAre(ElementsAre(key(0, 1), key(1, 0), key(2, 0))));
}

TEST_F(Reference, AcceptsTheSameListsInAnyOrder) {
  EXPECT_THAT(graph.difference({{0, 2, 2, 3}, {2, 1, 0}}), IsEmpty());
}

TEST_F(Reference, SeesWhatIsMissingTooMuchDoubleOrElsewhere) {
  EXPECT_THAT(graph.difference({{0, 1, 1, 2}, {1, 0}}), HasSubstr("vertex 0 has 1 neighbours"));
  EXPECT_THAT(graph.difference({{0, 2, 3, 4}, {1, 2, 0, 0}}), HasSubstr("vertex 1"));
  EXPECT_THAT(graph.difference({{0, 3, 3, 4}, {1, 2, 2, 0}}), HasSubstr("vertex 0 has 3"));
  EXPECT_THAT(graph.difference({{0, 2, 2, 3}, {1, 2, 1}}), HasSubstr("vertex 2"));
  EXPECT_THAT(graph.difference({{0, 2, 2}, {1, 2}}), HasSubstr("1 adjacency entries are missing"));
}

}}  // namespace warpheap::tool
