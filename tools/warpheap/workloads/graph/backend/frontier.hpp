// SPDX-License-Identifier: Apache-2.0
// Breadth-first search over a dynamic graph, level by level. Every member expands the vertices of
// the last level that are its own, and sends the neighbours that it has not met before to their
// owners, which keep the levels.
//
// The frontier goes to the owners, and lists are not read across: a member sends each vertex once
// in a search at most, 4 bytes, and a list that is read across costs 4 bytes an edge.
//
//   graph.F1  A bit of `seen` is set once this member has sent the vertex to its owner.
//   graph.F2  A level is written once, by the thread whose compare-exchange finds the vertex
//       unreached.
//   graph.F3  A piece of the frontier is some neighbours of one vertex, so that many warps share a
//       hub.
#pragma once

#include "adjacency.hpp"
#include "cluster.hpp"
#include "warpheap/sync/warp_aggregate.hpp"
#include "workloads/graph/dynamic_graph.hpp"
#include "workloads/graph/vertex_deal.hpp"

namespace warpheap::tool::graph { inline namespace WARPHEAP_BACKEND {

/// Neighbours `piece_length · number …` of vertex `local`.
struct frontier_piece {
  u32 local;
  u32 number;
};
constexpr u32 piece_length = 1024;

/// Pieces of a level, in device memory.
struct frontier_view {
  frontier_piece* pieces;
  u32* size;

  /// Adds a vertex with this many neighbours.
  WARPHEAP_DEVICE void add(u32 local, u32 degree) const {
    if (degree == 0) return;
    pieces[aggregated_fetch_add(simt::active_mask(), *size)] = {local, 0};
    if (degree <= piece_length) return;
    u32 const more = (degree - 1) / piece_length;
    // relaxed: read by a later kernel
    u32 const first = atomic_ref<u32>{*size}.fetch_add(more, order::relaxed);
    for (u32 i = 0; i < more; ++i) pieces[first + i] = {local, i + 1};
  }
};

/// Kernel, of one thread: the source is the first level.
struct start_search {
  template <cluster Cluster>
  WARPHEAP_DEVICE void operator()(Cluster among, vertex_deal deal, adjacency_list const* lists, u32 source, u32* levels,
                                  frontier_view now) const {
    auto const [owner, local] = deal.find(source);
    if (owner != among.rank()) return;
    levels[local] = 0;
    now.add(local, lists[local].size());
  }
};

/// Kernel: each warp takes pieces of the frontier in turn, and sends what it finds.
struct expand_frontier {
  template <cluster Cluster>
  WARPHEAP_DEVICE void operator()(Cluster among, vertex_deal deal, adjacency_list const* lists, frontier_view now,
                                  u32* seen) const {
    u64 const warps = u64{simt::grid_dim()} * simt::block_dim() / warp_lanes;
    auto const box = among.boxes(among.rank()).found;
    for (u64 i = global_thread_index() / warp_lanes; i < *now.size; i += warps) {
      auto const [local, number] = now.pieces[i];
      u32 const first = number * piece_length, rest = lists[local].size() - first;
      u32 const count = rest < piece_length ? rest : piece_length;
      for (u32 at = simt::lane_id(); at < count; at += warp_lanes)
        if (u32 const to = lists[local].data()[first + at]; is_new(seen, to)) send(deal, box, to);
    }
  }

 private:
  /// Whether the calling thread is the first that meets the vertex (graph.F1).
  WARPHEAP_DEVICE static bool is_new(u32* seen, u32 vertex) {
    atomic_ref<u32> const word{seen[vertex / 32]};
    u32 const bit = 1u << vertex % 32;
    // relaxed, both: the bit alone decides, and whatever is sent is read by a later kernel
    return !(word.load(order::relaxed) & bit) && !(word.fetch_or(bit, order::relaxed) & bit);
  }

  WARPHEAP_DEVICE static void send(vertex_deal deal, found_boxes box, u32 vertex) {
    auto const [owner, local] = deal.find(vertex);
    box.locals[deal.first(owner) + aggregated_fetch_add(simt::active_mask(), box.counts[owner])] = local;
  }
};

/// Kernel: threads take what members found of this one's vertices in turn, and make the next level
/// of those that are new.
struct settle_level {
  template <cluster Cluster>
  WARPHEAP_DEVICE void operator()(Cluster among, vertex_deal deal, adjacency_list const* lists, u32 level, u32* levels,
                                  frontier_view next) const {
    u64 const threads = u64{simt::grid_dim()} * simt::block_dim();
    for (u32 sender = 0; sender < among.size(); ++sender) {
      auto const box = among.boxes(sender).found;
      u32 const count = box.counts[among.rank()];
      u32 const* const locals = box.locals + deal.first(among.rank());
      for (u64 i = global_thread_index(); i < count; i += threads) {
        u32 const local = locals[i];
        u32 expected = unreached;
        // relaxed: levels are read by later kernels (graph.F2)
        if (atomic_ref<u32>{levels[local]}.compare_exchange(expected, level, order::relaxed, order::relaxed))
          next.add(local, lists[local].size());
      }
    }
  }
};

/// Kernel, of one thread: tells the host how large the next level is, and empties what is of this
/// one. All members have settled.
struct close_level {
  WARPHEAP_DEVICE void operator()(frontier_view now, frontier_view next, found_boxes box, u32 members,
                                  u64* told) const {
    *now.size = 0;
    for (u32 i = 0; i < members; ++i) box.counts[i] = 0;
    // relaxed: the host reads it when the kernel has ended
    atomic_ref<u64, scope::system>{*told}.store(*next.size, order::relaxed);
  }
};

}}  // namespace warpheap::tool::graph::WARPHEAP_BACKEND
