// Reads a graph from a Matrix Market file in coordinate format. Every entry is an edge from its row
// to its column; values are checked and ignored. A symmetric, skew-symmetric or hermitian matrix is
// an undirected graph, stored as one triangle; a general one is directed.
// Source: Boisvert, Pozo and Remington, The Matrix Market exchange formats, 1996.
#pragma once

#include <string>
#include <string_view>

#include "workloads/graph/edge_list.hpp"

namespace warpheap::tool {

/// Throws usage_error: one line with the file, the line in it, and the fault.
edge_list read_matrix_market(std::string const& path, parallel_work work = {});

/// Parses `text`; `name` stands for the file in messages. Throws usage_error likewise.
edge_list parse_matrix_market(std::string const& name, std::string_view text, parallel_work work = {});

}  // namespace warpheap::tool
