// SPDX-License-Identifier: Apache-2.0
// Reads a graph from an edge list as SNAP, KONECT and the Network Repository publish them: a line
// an edge, its two vertices first. Lines that begin with # or % are comments.
//
// Vertices are counted from 0, and there are as many as the highest number says; a number that no
// edge has is a vertex without neighbours. Edges are directed unless a comment begins with "#
// Undirected", as SNAP's do. A file of KONECT begins with "% sym" or "% asym" and counts from 1.
// Source: snap.stanford.edu/data; Kunegis, Handbook of Network Analysis: the KONECT project, 2016.
#pragma once

#include <string>
#include <string_view>

#include "workloads/graph/edge_list.hpp"

namespace warpheap::tool {

/// As parse_matrix_market().
edge_list parse_edge_list(std::string const& name, std::string_view text, parallel_work work = {});

}  // namespace warpheap::tool
