// SPDX-License-Identifier: Apache-2.0
// A graph as it is read or made: a list of edges, in any order, with duplicates if the source has
// them. Everything here runs on all cores, and its result does not depend on their number.
#pragma once

#include <string>

#include "dynamic_graph.hpp"
#include "sorted_keys.hpp"
#include "workloads/large_array.hpp"
#include "workloads/parallel_work.hpp"

namespace warpheap::tool {

/// From one vertex to another, both in [0, vertices). Not zeroed at first: see large_array.
struct edge {
  u32 from;
  u32 to;
};

using edges_array = large_array<edge>;

struct edge_list {
  u32 vertices = 0;
  bool directed = false;  ///< an undirected edge is in the adjacency of both its ends
  edges_array edges;
};

/// All adjacency entries that `edges[first … last)` make, ascending, without duplicates. A loop
/// makes one.
entry_keys keys_of(edge_list const& graph, size_t first, size_t last, parallel_work work = {});
entry_keys keys_of(edge_list const& graph, parallel_work work = {});

/// The entries as a batch for a backend.
edge_groups group_by_vertex(entry_keys const& keys, parallel_work work = {});

/// An R-MAT graph of 2^scale vertices and edge_factor·2^scale undirected edges, with duplicates and
/// loops, a = 0.57, b = c = 0.19, d = 0.05, vertices renamed at random: few hubs with very many
/// neighbours, and many vertices with few. The same seed makes the same graph everywhere.
/// Source: Chakrabarti, Zhan and Faloutsos, R-MAT: a recursive model for graph mining, 2004;
/// parameters as in Graph500.
edge_list make_rmat(u32 scale, u32 edge_factor, u64 seed, parallel_work work = {});

}  // namespace warpheap::tool
