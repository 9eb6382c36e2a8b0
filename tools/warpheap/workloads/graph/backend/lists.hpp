// SPDX-License-Identifier: Apache-2.0
// All lists of a heap: brought to the host, and freed.
#pragma once

#include "adjacency.hpp"
#include "warpheap/platform/device_buffer.hpp"
#include "workloads/graph/dynamic_graph.hpp"

namespace warpheap::tool::graph { inline namespace WARPHEAP_BACKEND {

/// Kernel: frees every list.
struct drop_neighbour_lists {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, adjacency_list* lists, u32 vertices, graph_tally* total) const {
    u64 const vertex = global_thread_index();
    if (vertex >= vertices || lists[vertex].capacity() == 0) return;
    graph_tally tally;
    lists[vertex].destroy(counting_ref{heap, lists[vertex], tally});
    add(*total, tally);
  }
};

/// Kernel: copies every list to its place in one array.
struct gather_lists {
  WARPHEAP_DEVICE void operator()(adjacency_list const* lists, u64 const* first, u32* targets, u32 vertices) const {
    u64 const vertex = global_thread_index();
    if (vertex >= vertices) return;
    for (u32 i = 0; i < lists[vertex].size(); ++i) targets[first[vertex] + i] = lists[vertex].data()[i];
  }
};

/// The lists, in order. Their device is the current one, and no kernel changes them.
inline adjacency_lists lists_of(device_buffer<adjacency_list> const& lists) {
  adjacency_lists made;
  made.first.assign(1, 0);
  for (auto const& list : lists.to_host()) made.first.push_back(made.first.back() + list.size());
  device_buffer<u64> const first{made.first};
  device_buffer<u32> const targets(made.first.back());
  launch(shape_for(lists.size(), 128), gather_lists{}, lists.data(), first.data(), targets.data(),
         static_cast<u32>(lists.size()));
  synchronize();
  made.targets = targets.to_host();
  return made;
}

}}  // namespace warpheap::tool::graph::WARPHEAP_BACKEND
