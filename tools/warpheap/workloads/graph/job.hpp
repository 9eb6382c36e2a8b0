// SPDX-License-Identifier: Apache-2.0
// The work of `warpheap graph` for one allocator: all edges are inserted in batches in a random
// order; rounds follow that erase a random sample of the edges and insert as many; the graph is
// compared with the reference, and searched if that is asked for; and everything is freed.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "edge_list.hpp"

namespace warpheap::tool {

struct graph_settings {
  std::string allocator = {};
  u64 pool_bytes = 0;
  u64 seed = 1;
  u32 rounds = 0;                       ///< of erasing and inserting
  u64 batch_size = 1;                   ///< edges
  bool replace = false;                 ///< a round inserts new random edges, not the erased ones
  std::optional<u32> search_from = {};  ///< one of the vertices
};

/// A breadth-first search of the graph at the end.
struct search_outcome {
  u32 source = 0;
  u64 reached = 0;  ///< vertices, the source among them
  u64 entries = 0;  ///< adjacency entries of these
  u32 depth = 0;    ///< the greatest distance from the source
  double seconds = 0;
};

struct graph_outcome {
  std::string allocator = {};
  u64 edges = 0;        ///< adjacency entries at the end
  graph_counts counts;  ///< of the graph at the end, before everything is freed
  u64 peak_bytes = 0;   ///< the most live_bytes after any batch
  std::optional<search_outcome> search = {};
  std::vector<member_counts> members = {};  ///< at the end, too
  call_trace trace = {};                    ///< if the graph is recorded
  std::string fault;

  bool verified() const { return fault.empty(); }
};

/// `dynamic` is of as many vertices as `graph`, with no edges yet. `keys` are keys_of(graph), which
/// all allocators share.
graph_outcome build_graph(std::unique_ptr<dynamic_graph> dynamic, edge_list const& graph, entry_keys const& keys,
                          graph_settings const& settings, bench::progress const& report);

}  // namespace warpheap::tool
