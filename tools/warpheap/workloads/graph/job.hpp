// The work of `warpheap graph` for one allocator: all edges are inserted in batches in a random
// order; rounds follow that erase a random sample of the edges and insert as many; the graph is
// compared with the reference; and everything is freed.
#pragma once

#include <memory>
#include <string>

#include "edge_list.hpp"

namespace warpheap::tool {

struct graph_settings {
  std::string allocator = {};
  u64 pool_bytes = 0;
  u64 seed = 1;
  u32 rounds = 0;        ///< of erasing and inserting
  u64 batch_size = 1;    ///< edges
  bool replace = false;  ///< what a round inserts is new random edges, not those that it erased
};

struct graph_outcome {
  std::string allocator = {};
  u64 edges = 0;        ///< adjacency entries at the end
  graph_counts counts;  ///< of the graph at the end, before everything is freed
  u64 peak_bytes = 0;   ///< the most live_bytes after any batch
  call_trace trace;     ///< if the graph is recorded
  std::string fault;

  bool verified() const { return fault.empty(); }
};

/// `dynamic` is of as many vertices as `graph`, with no edges yet. `keys` are keys_of(graph), which
/// all allocators share.
graph_outcome build_graph(std::unique_ptr<dynamic_graph> dynamic, edge_list const& graph, entry_keys const& keys,
                          graph_settings const& settings, bench::progress const& report);

}  // namespace warpheap::tool
