// SPDX-License-Identifier: Apache-2.0
// The graph that `warpheap graph` builds on a backend, as the host sees it: batches of edges go in,
// and counts and lists come out.
#pragma once

#include <memory>
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

/// The level of a vertex to which no path leads.
inline constexpr u32 unreached = ~0u;

/// What one member of a job on several heaps did. A job on one heap has no members.
struct member_counts {
  int device = 0;
  std::string host = {};  ///< of a member that is a process; else empty
  u64 vertices = 0;       ///< that it has
  graph_counts graph;     ///< its lists; the seconds are those of its own kernels
  u64 messages = 0;       ///< blocks of its heap that it sent
  u64 messages_to_others = 0;
  u64 peak_bytes = 0;  ///< the most live bytes after any batch
  double send_seconds = 0, apply_seconds = 0, free_seconds = 0, search_seconds = 0;
};

/// Levels of a breadth-first search.
struct search_levels {
  std::vector<u32> of_vertex;  ///< distance from the source in edges, or `unreached`
  double seconds = 0;          ///< of device work
};

/// All adjacency lists: vertex v's neighbours are `targets[first[v]] … targets[first[v + 1]]`.
struct adjacency_lists {
  std::vector<u64> first;
  std::vector<u32> targets;
};

/// A graph in device memory, each adjacency list a block of a heap. Edges are directed.
class dynamic_graph {
 public:
  virtual ~dynamic_graph() = default;
  /// Inserts the edges that are not there yet.
  virtual void insert(edge_groups const& batch) = 0;
  /// Erases the edges that are there.
  virtual void erase(edge_groups const& batch) = 0;
  virtual graph_counts counts() const = 0;
  /// One of each heap, if the graph lies in several.
  virtual std::vector<member_counts> members() const { return {}; }
  virtual adjacency_lists read() const = 0;
  /// A breadth-first search from `source`, one of the vertices.
  virtual search_levels search(u32 source) = 0;
  /// What is wrong with the heap, or contradicts the counts; empty if nothing is.
  virtual std::string fault() const = 0;
  /// What its kernels asked, if that is recorded.
  virtual call_trace trace() const { return {}; }
  /// Frees every list. After that, fault() also finds blocks that were lost.
  virtual void clear() = 0;
};

/// A backend's part: graphs in one heap.
struct graph_job {
  std::unique_ptr<dynamic_graph> (*make)(std::string const& allocator, u64 pool_bytes, u32 vertices);
  /// On the default allocator, with its calls recorded.
  std::unique_ptr<dynamic_graph> (*make_traced)(u64 pool_bytes, u32 vertices);
};

/// A backend's part: graphs in a heap set with a member on each of some devices, which may name one
/// twice.
struct set_graph_job {
  /// Names of the allocators that make() takes.
  std::vector<std::string> (*allocators)();
  /// Throws cuda_error if one device cannot reach another.
  std::unique_ptr<dynamic_graph> (*make)(std::string const& allocator, u64 pool_bytes, u32 vertices,
                                         std::vector<int> const& devices);
};

}  // namespace warpheap::tool
