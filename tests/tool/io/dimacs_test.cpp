// SPDX-License-Identifier: Apache-2.0
// The reader of the DIMACS challenges' files.
#include "io/dimacs.hpp"
#include "cli/usage_error.hpp"

#include <gmock/gmock.h>

namespace warpheap::tool { namespace {

using testing::StartsWith;

std::string dimacs_fault(std::string const& text) {
  try {
    parse_dimacs("g.gr", text);
  } catch (usage_error const& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Dimacs, ReadsArcsAsDirectedEdges) {
  for (std::string const head : {"c a road\nc\np sp 3 2\n", "p max 3 2\nn 1 s\nn 3 t\n"}) {
    auto const graph = parse_dimacs("g.gr", head + "a 1 3 800\nc\na 3 2 -1\n");
    EXPECT_TRUE(graph.directed);
    EXPECT_EQ(graph.vertices, 3u);
    ASSERT_EQ(graph.edges.size(), 2u);
    EXPECT_EQ(graph.edges[0].from, 0u);
    EXPECT_EQ(graph.edges[0].to, 2u);
    EXPECT_EQ(graph.edges[1].from, 2u);
  }
}

TEST(Dimacs, ReadsEdgesAsUndirectedHoweverTheyAreCounted) {
  for (std::string const head : {"p edge 4 1\n", "p col 4 2\nn 1 7\n", "p edge 4 4\n"}) {
    auto const graph = parse_dimacs("g.col", head + "e 1 2\ne 2 1\n");
    EXPECT_FALSE(graph.directed);
    EXPECT_EQ(graph.vertices, 4u);
    EXPECT_EQ(graph.edges.size(), 2u);
  }
}

TEST(Dimacs, NamesFileLineAndFault) {
  struct fault {
    char const* text;
    char const* said;
  };
  for (auto const& [text, said] :
       std::vector<fault>{{"", "g.gr:1: not a DIMACS file: it has no line that begins with p"},
                          {"c only\n", "g.gr:1: not a DIMACS file: it has no line that begins with p"},
                          {"0 1\n", "g.gr:1: not a DIMACS file: '0' comes before a line that begins with p"},
                          {"p cnf 3 2\n", "g.gr:1: the problem is 'cnf'; those of graphs are sp, max, edge and col"},
                          {"p sp 3\n", "g.gr:1: the line has no number of edges"},
                          {"p sp -3 1\n", "g.gr:1: '-3' is not a number of vertices"},
                          {"p sp 2147483648 1\n", "g.gr:1: 2147483648 vertices are more than"},
                          {"p sp 3 2\na 1 2 5\n", "g.gr:2: the file ends after 1 of 2 entries"},
                          {"p sp 3 1\na 1 2 5\na 2 3 5\n", "g.gr:3: an entry more than the 1 that are promised"},
                          {"p sp 3 1\nq 1 2\n", "g.gr:2: 'q' begins neither an arc nor an edge"},
                          {"p sp 3 1\na 0 2\n", "g.gr:2: vertex 0 is not between 1 and 3"},
                          {"p edge 3 1\ne 1 4\n", "g.gr:2: second vertex 4 is not between 1 and 3"}})
    EXPECT_THAT(dimacs_fault(text), StartsWith(said));
}

}}  // namespace warpheap::tool
