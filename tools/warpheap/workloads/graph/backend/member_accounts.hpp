// SPDX-License-Identifier: Apache-2.0
// What a member's tally says to the host: counts, and whether they agree with its heap.
#pragma once

#include <string>

#include "tally.hpp"
#include "warpheap/heap/heap.hpp"
#include "workloads/graph/dynamic_graph.hpp"

namespace warpheap::tool::graph { inline namespace WARPHEAP_BACKEND {

inline graph_counts counts_of(graph_tally const& now) {
  return {now.mallocs, now.frees, now.failures, now.lost, now.inserted, now.erased, now.live_bytes};
}

/// All but the seconds.
inline void add(graph_counts& to, graph_counts const& more) {
  for (auto const field : {&graph_counts::mallocs, &graph_counts::frees, &graph_counts::failures, &graph_counts::lost,
                           &graph_counts::inserted, &graph_counts::erased, &graph_counts::live_bytes})
    to.*field += more.*field;
}

/// Every block of the member's heap is one of its lists.
inline std::string fault_of_member(graph_tally const& now, heap_statistics const& seen) {
  if (seen.live_blocks != now.mallocs - now.frees)
    return "the heap has " + std::to_string(seen.live_blocks) + " live blocks, the graph " +
           std::to_string(now.mallocs - now.frees);
  if (seen.live_bytes != now.live_bytes)
    return "the heap has " + std::to_string(seen.live_bytes) + " live bytes, the graph " +
           std::to_string(now.live_bytes);
  return {};
}

}}  // namespace warpheap::tool::graph::WARPHEAP_BACKEND
