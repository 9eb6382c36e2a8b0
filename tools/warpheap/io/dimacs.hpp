// SPDX-License-Identifier: Apache-2.0
// Reads a graph from a file of the DIMACS challenges: a line `p KIND VERTICES EDGES`, and a line
// for each edge, `a FROM TO …` of a directed graph (kinds sp and max) and `e FROM TO` of an
// undirected one (edge and col). Vertices are counted from 1. Other lines are about single
// vertices, or comments.
//
// A directed graph has as many edges as it says. The number of an undirected one is not judged:
// published files count their edges once or twice.
// Source: www.diag.uniroma1.it/challenge9/format.shtml; Johnson and Trick, Cliques, Coloring and
// Satisfiability, 1996.
#pragma once

#include <string>
#include <string_view>

#include "workloads/graph/edge_list.hpp"

namespace warpheap::tool {

/// As parse_matrix_market().
edge_list parse_dimacs(std::string const& name, std::string_view text, parallel_work work = {});

}  // namespace warpheap::tool
