// SPDX-License-Identifier: Apache-2.0
// The reader of edge lists as others publish them.
#include "io/edge_list_file.hpp"
#include "cli/usage_error.hpp"

#include <gmock/gmock.h>

namespace warpheap::tool { namespace {

using testing::ElementsAre;
using testing::Pair;
using testing::StartsWith;

std::vector<std::pair<u32, u32>> pairs_of(edge_list const& graph) {
  std::vector<std::pair<u32, u32>> pairs;
  for (auto const& each : graph.edges) pairs.emplace_back(each.from, each.to);
  return pairs;
}

std::string edge_list_fault(std::string const& text) {
  try {
    parse_edge_list("g.txt", text);
  } catch (usage_error const& error) {
    return error.what();
  }
  return "accepted";
}

TEST(EdgeListFile, OfSnapCountsVerticesFromZero) {
  auto const graph = parse_edge_list("g.txt",
                                     "# Directed graph (each unordered pair of nodes is saved once): g.txt\n"
                                     "# Nodes: 3 Edges: 2\n# FromNodeId\tToNodeId\n0\t5\n5\t2\n");
  EXPECT_TRUE(graph.directed);
  EXPECT_EQ(graph.vertices, 6u);
  EXPECT_THAT(pairs_of(graph), ElementsAre(Pair(0, 5), Pair(5, 2)));
}

TEST(EdgeListFile, SaysInItsHeadThatItIsUndirected) {
  EXPECT_FALSE(parse_edge_list("g.txt", "# Undirected graph: ../g.txt\n# Nodes: 2\n0\t1\n").directed);
  EXPECT_FALSE(parse_edge_list("g.txt", "#\n\n#  undirected graph\n0\t1\n").directed);
  EXPECT_TRUE(parse_edge_list("g.txt", "0 1\n# Undirected\n1 2\n").directed) << "not its head";
}

TEST(EdgeListFile, OfKonectCountsVerticesFromOne) {
  auto const graph = parse_edge_list("out.g", "% asym positive\n% 2 3 3\n1 3 1 1082040961\n3 2 -1 1155\n");
  EXPECT_TRUE(graph.directed);
  EXPECT_EQ(graph.vertices, 3u);
  EXPECT_THAT(pairs_of(graph), ElementsAre(Pair(0, 2), Pair(2, 1)));
  EXPECT_FALSE(parse_edge_list("out.g", "% sym unweighted\n1 2\n").directed);
  EXPECT_THAT(edge_list_fault("% sym unweighted\n0 1\n"), StartsWith("g.txt:2: vertex 0 is not between 1 and"));
}

TEST(EdgeListFile, TakesCommasAndJudgesNothingThatItThrowsAway) {
  EXPECT_THAT(pairs_of(parse_edge_list("g.csv", "0,1,0.5\n 1, 2,,x\n\n2\t3 weight\n")),
              ElementsAre(Pair(0, 1), Pair(1, 2), Pair(2, 3)));
}

TEST(EdgeListFile, MayBeEmpty) {
  for (auto const* const text : {"", "\n", "# Nodes: 0\n", "% sym unweighted"})
    EXPECT_EQ(parse_edge_list("g.txt", text).vertices, 0u) << text;
}

TEST(EdgeListFile, NamesFileLineAndFault) {
  struct fault {
    char const* text;
    char const* said;
  };
  for (auto const& [text, said] :
       std::vector<fault>{{"# a\n0 1\n2\n", "g.txt:3: the line has no second vertex"},
                          {"source,target\n0,1\n", "g.txt:1: 'source' is not a vertex"},
                          {"0 -1\n", "g.txt:1: second vertex -1 is not between 0 and 2147483646"},
                          {"2147483647 0\n", "g.txt:1: vertex 2147483647 is not between 0 and 2147483646"},
                          {"% bip unweighted\n1 1\n", "g.txt:1: a bipartite network of KONECT"},
                          {"%%MatrixMarket matrix coordinate pattern general\n3 3 0\n",
                           "g.txt:1: a Matrix Market file: --format mtx"}})
    EXPECT_THAT(edge_list_fault(text), StartsWith(said));
}

}}  // namespace warpheap::tool
