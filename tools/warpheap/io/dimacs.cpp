// SPDX-License-Identifier: Apache-2.0
#include "dimacs.hpp"

#include <fmt/format.h>

#include "cli/printable.hpp"
#include "edge_lines.hpp"

namespace warpheap::tool {

namespace {

/// Comments, and lines about single vertices: terminals, positions, colours, bounds.
constexpr auto no_edges = "cnvdx";

}  // namespace

edge_list parse_dimacs(std::string const& name, std::string_view text, parallel_work work) {
  line_reader reader{name, text, no_edges};
  if (!reader.next_data()) reader.fail("not a DIMACS file: it has no line that begins with p");
  if (auto const word = reader.field(); word != "p")
    reader.fail(
        fmt::format("not a DIMACS file: '{}' comes before a line that begins with p; --format says that it is of "
                    "another format",
                    excerpt(word)));
  auto const kind = reader.field();
  edge_list graph;
  graph.directed = kind == "sp" || kind == "max";
  if (!graph.directed && kind != "edge" && kind != "col")
    reader.fail(fmt::format("the problem is '{}'; those of graphs are sp, max, edge and col", excerpt(kind)));
  u64 const vertices = reader.count("vertices"), edges = reader.count("edges");
  if (vertices > most_vertices) reader.fail(fmt::format("{} vertices are more than {}", vertices, most_vertices));
  graph.vertices = static_cast<u32>(vertices);
  auto const read = [&](line_reader& line) {
    if (auto const word = line.field(); word != "a" && word != "e")
      line.fail(fmt::format("'{}' begins neither an arc nor an edge", excerpt(word)));
    u32 const from = line.vertex("vertex", 1, vertices);
    return edge{from, line.vertex("second vertex", 1, vertices)};
  };
  graph.edges = read_edges(reader, graph.directed ? std::optional{edges} : std::nullopt, read, work);
  return graph;
}

}  // namespace warpheap::tool
