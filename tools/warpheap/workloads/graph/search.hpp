// SPDX-License-Identifier: Apache-2.0
// Breadth-first search on the host, which one of a dynamic graph is compared with.
#pragma once

#include <string>

#include "reference.hpp"

namespace warpheap::tool {

/// What a search from one vertex finds.
struct reached_part {
  /// of each vertex its distance from the source in edges, or `unreached`
  std::vector<u32> levels;
  u64 vertices = 0;  ///< reached, the source among them
  u64 entries = 0;   ///< adjacency entries of these
  u32 depth = 0;     ///< the greatest distance
};

/// Searches a graph of `vertices` vertices from `source`, one of them.
reached_part search(reference_graph const& graph, u32 vertices, u32 source);

/// How the levels of another search differ; empty if they do not.
std::string difference_of_levels(reached_part const& wanted, std::vector<u32> const& levels);

}  // namespace warpheap::tool
