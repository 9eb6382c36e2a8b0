// SPDX-License-Identifier: Apache-2.0
// Reads a graph from a Matrix Market file in coordinate format. Every entry is an edge from its row
// to its column; values are not looked at. A symmetric, skew-symmetric or hermitian matrix is an
// undirected graph, stored as one triangle; a general one is directed.
// Source: Boisvert, Pozo and Remington, The Matrix Market exchange formats, 1996. Differs: blanks
// may come before the banner, which may begin with one % in place of two.
#pragma once

#include <string>
#include <string_view>

#include "workloads/graph/edge_list.hpp"

namespace warpheap::tool {

/// Parses `text`; `name` stands for the file in messages. Throws usage_error: one line with the
/// file, the line in it, and the fault.
edge_list parse_matrix_market(std::string const& name, std::string_view text, parallel_work work = {});

/// Whether a line is the banner.
bool is_matrix_market(std::string_view line);

}  // namespace warpheap::tool
