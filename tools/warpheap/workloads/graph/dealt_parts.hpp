// SPDX-License-Identifier: Apache-2.0
// What the members of a job have of each vertex, put together in the order of vertices.
#pragma once

#include <vector>

#include "dynamic_graph.hpp"
#include "vertex_deal.hpp"

namespace warpheap::tool {

/// `parts[i]` has the lists of member i's vertices, in the order of their numbers there.
adjacency_lists in_order_of_vertices(vertex_deal deal, std::vector<adjacency_lists> const& parts);

/// `parts[i]` has a number for each of member i's vertices, likewise.
std::vector<u32> in_order_of_vertices(vertex_deal deal, std::vector<std::vector<u32>> const& parts);

}  // namespace warpheap::tool
