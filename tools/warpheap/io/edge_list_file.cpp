// SPDX-License-Identifier: Apache-2.0
#include "edge_list_file.hpp"

#include <algorithm>

#include "edge_lines.hpp"
#include "matrix_market.hpp"

namespace warpheap::tool {

namespace {

/// What the comments at the head of a file say.
struct list_header {
  bool directed = true;
  u32 first_vertex = 0;
};

/// Takes the comments that come before the first edge.
list_header read_header(line_reader& reader) {
  list_header said;
  for (auto ahead = reader; ahead.next() && (ahead.line().empty() || ahead.is_comment()); reader = ahead) {
    if (is_matrix_market(ahead.line())) ahead.fail("a Matrix Market file: --format mtx reads it");
    auto words = ahead;
    auto const mark = words.field();
    auto const kind = lower(words.field());
    if (mark == "#" && kind == "undirected") said.directed = false;
    if (mark != "%" || ahead.number() != 1) continue;
    if (kind == "bip")
      ahead.fail(
          "a bipartite network of KONECT, whose two sides are counted each from 1: the matrix is rectangular, and "
          "that of a graph is square");
    if (kind == "sym" || kind == "asym") said = {.directed = kind == "asym", .first_vertex = 1};
  }
  return said;
}

}  // namespace

edge_list parse_edge_list(std::string const& name, std::string_view text, parallel_work work) {
  line_reader reader{name, text, "#%"};
  auto const said = read_header(reader);
  edge_list graph;
  graph.directed = said.directed;
  auto const read = [&](line_reader& line) {
    u64 const last = most_vertices - 1 + said.first_vertex;
    u32 const from = line.vertex("vertex", said.first_vertex, last);
    return edge{from, line.vertex("second vertex", said.first_vertex, last)};
  };
  graph.edges = read_edges(reader, {}, read, work);
  for (auto const& each : graph.edges) graph.vertices = std::max({graph.vertices, each.from + 1, each.to + 1});
  return graph;
}

}  // namespace warpheap::tool
