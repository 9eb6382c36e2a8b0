// The graph that `warpheap graph` builds on a backend, as the host sees it: batches of edges go in,
// and counts and lists come out.
#pragma once

#include <string>
#include <vector>

#include "warpheap/adaptor/trace/calls.hpp"

namespace warpheap::tool {

/// Edges of one batch, grouped by their first vertex: group i is `targets[first[i]] …
/// targets[first[i + 1]]` of vertex `vertices[i]`, ascending and without duplicates. Each vertex
/// has one group.
struct edge_groups {
  std::vector<u32> vertices;
  std::vector<u32> first{0};
  std::vector<u32> targets;
};

/// What a dynamic graph's kernels did since it was made.
struct graph_counts {
  u64 mallocs = 0;   ///< blocks handed out: by malloc, and by realloc when the block moved
  u64 frees = 0;     ///< blocks given back, likewise
  u64 failures = 0;  ///< calls that returned nullptr
  u64 lost = 0;      ///< adjacency entries that found no room
  u64 inserted = 0;  ///< adjacency entries
  u64 erased = 0;
  /// usable bytes of live blocks, or the bytes asked for where the allocator cannot tell
  u64 live_bytes = 0;
  double seconds = 0;  ///< of device work: kernels, without copies to and from the host
};

/// All adjacency lists: vertex v's neighbours are `targets[first[v]] … targets[first[v + 1]]`.
struct adjacency_lists {
  std::vector<u64> first;
  std::vector<u32> targets;
};

/// A graph in device memory, each adjacency list a block of one heap. Edges are directed.
class dynamic_graph {
 public:
  virtual ~dynamic_graph() = default;
  /// Inserts the edges that are not there yet.
  virtual void insert(edge_groups const& batch) = 0;
  /// Erases the edges that are there.
  virtual void erase(edge_groups const& batch) = 0;
  virtual graph_counts counts() const = 0;
  virtual adjacency_lists read() const = 0;
  /// What is wrong with the heap, or contradicts the counts; empty if nothing is.
  virtual std::string fault() const = 0;
  /// What its kernels asked, if that is recorded.
  virtual call_trace trace() const { return {}; }
  /// Frees every list. After that, fault() also finds blocks that were lost.
  virtual void clear() = 0;
};

}  // namespace warpheap::tool
