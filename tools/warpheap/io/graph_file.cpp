// SPDX-License-Identifier: Apache-2.0
#include "graph_file.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "cli/nearest_names.hpp"
#include "cli/usage_error.hpp"
#include "dimacs.hpp"
#include "edge_list_file.hpp"
#include "matrix_market.hpp"
#include "text_file.hpp"

namespace warpheap::tool {

namespace {

/// A format: its name, the ends of names of its files, and its reader.
struct known_format {
  std::string name;
  std::vector<std::string> extensions;
  edge_list (*parse)(std::string const& name, std::string_view text, parallel_work work);
};

/// The first is that of a file whose name says nothing.
std::vector<known_format> const& known_formats() {
  static std::vector<known_format> const known{
      {"mtx", {".mtx"}, parse_matrix_market},
      {"edges", {".txt", ".edges", ".edgelist", ".el", ".tsv", ".csv"}, parse_edge_list},
      {"dimacs", {".dimacs", ".gr", ".max", ".col", ".clq"}, parse_dimacs}};
  return known;
}

bool is_one_of(std::string const& name, std::vector<std::string> const& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::string graph_format(std::string const& name, std::string const& path) {
  std::vector<std::string> names;
  for (auto const& each : known_formats()) names.push_back(each.name);
  if (is_one_of(name, names)) return name;
  if (!name.empty())
    throw usage_error{fmt::format("--format: no format is called '{}'; {}", name, names_instead_of(name, names))};
  std::filesystem::path file = std::filesystem::path{path}.filename();
  if (is_one_of(file.extension(), {".gz", ".Z", ".bz2", ".xz", ".zst"})) file = file.stem();
  if (file.string().starts_with("out.")) return "edges";  // as KONECT names them
  for (auto const& each : known_formats())
    if (is_one_of(file.extension(), each.extensions)) return each.name;
  return names.front();
}

edge_list read_graph(std::string const& path, std::string const& format, parallel_work work) {
  auto const& known = known_formats();
  auto const wanted = std::find_if(known.begin(), known.end(), [&](auto const& each) { return each.name == format; });
  std::string const says_format = format == known.front().name ? "" : "--format " + format + " ";
  auto const text = read_text_file(path, fmt::format("graph {}--input -", says_format));
  return wanted->parse(input_name(path), text, std::move(work));
}

}  // namespace warpheap::tool
