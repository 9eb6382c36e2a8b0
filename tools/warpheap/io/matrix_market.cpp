// SPDX-License-Identifier: Apache-2.0
#include "matrix_market.hpp"

#include <fmt/format.h>

#include "cli/printable.hpp"
#include "edge_lines.hpp"

namespace warpheap::tool {

namespace {

/// Reads the banner; whether it says that edges are directed.
bool read_banner(line_reader& reader) {
  while (reader.next() && reader.line().empty()) {
  }
  if (reader.line().empty()) reader.fail("not a Matrix Market file: it is empty");
  if (!is_matrix_market(reader.line()))
    reader.fail(
        fmt::format("not a Matrix Market file: it starts with '{}', not with %%MatrixMarket; --format says "
                    "that it is of another format",
                    excerpt(reader.line())));
  reader.field();
  auto const object = lower(reader.field()), format = lower(reader.field());
  if (object != "matrix") reader.fail(fmt::format("the object is '{}', not a matrix", excerpt(object)));
  if (format != "coordinate") reader.fail(fmt::format("the format is '{}'; a graph needs coordinate", excerpt(format)));
  reader.field();  // of the values
  auto const symmetry = lower(reader.field());
  if (symmetry == "general") return true;
  if (symmetry != "symmetric" && symmetry != "skew-symmetric" && symmetry != "hermitian")
    reader.fail(fmt::format("the symmetry is '{}'; there are general, symmetric, skew-symmetric and hermitian",
                            excerpt(symmetry)));
  return false;
}

/// The size line: how many vertices, and how many entries follow.
u64 read_size_line(line_reader& reader, edge_list& graph) {
  if (!reader.next_data()) reader.fail("the file ends before its size line");
  u64 const rows = reader.count("rows"), columns = reader.count("columns"), entries = reader.count("entries");
  if (auto const more = reader.field(); !more.empty())
    reader.fail(fmt::format("the size line has '{}' after its three numbers", excerpt(more)));
  if (rows != columns)
    reader.fail(
        fmt::format("the matrix is rectangular, {} rows and {} columns; that of a graph is square", rows, columns));
  if (rows > most_vertices) reader.fail(fmt::format("{} vertices are more than {}", rows, most_vertices));
  graph.vertices = static_cast<u32>(rows);
  return entries;
}

}  // namespace

bool is_matrix_market(std::string_view line) {
  auto const first = lower(line.substr(0, line.find_first_of(" \t")));
  return first == "%%matrixmarket" || first == "%matrixmarket";
}

edge_list parse_matrix_market(std::string const& name, std::string_view text, parallel_work work) {
  line_reader reader{name, text, "%"};
  edge_list graph;
  graph.directed = read_banner(reader);
  u64 const entries = read_size_line(reader, graph);
  auto const read = [&](line_reader& line) {
    u32 const row = line.vertex("row", 1, graph.vertices);
    return edge{row, line.vertex("column", 1, graph.vertices)};
  };
  graph.edges = read_edges(reader, entries, read, work);
  return graph;
}

}  // namespace warpheap::tool
