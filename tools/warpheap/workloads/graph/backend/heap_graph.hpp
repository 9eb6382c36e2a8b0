// The dynamic graph of `warpheap graph` in a heap: batches go up grouped by vertex, and a kernel
// updates each vertex's list. A lane takes one vertex. Vertices of a warp whose lists are long are
// taken one after the other by all of its lanes.
#pragma once

#include "adjacency.hpp"
#include "bench/measure.hpp"
#include "workloads/graph/dynamic_graph.hpp"

namespace warpheap::tool::graph {
inline namespace WARPHEAP_BACKEND {

/// A list and its batch with this many entries together are done by a warp, and shorter ones by a
/// lane.
constexpr u32 long_list = 128;

WARPHEAP_DEVICE inline void add(u64& total, u64 part) {
  // relaxed: read after the kernel
  if (part) atomic_ref<u64>{total}.fetch_add(part, order::relaxed);
}

WARPHEAP_DEVICE inline void add(graph_tally& total, graph_tally const& part) {
  add(total.mallocs, part.mallocs);
  add(total.frees, part.frees);
  add(total.failures, part.failures);
  add(total.lost, part.lost);
  add(total.inserted, part.inserted);
  add(total.erased, part.erased);
  add(total.live_bytes, part.live_bytes);
}

/// A batch in device memory.
struct batch_view {
  u32 const* vertices;
  u32 const* first;
  u32* targets;
  u32* places;
  u32 groups;
};

/// Kernel: lane i of the grid has group i. The grid is of whole warps, and all their lanes stay to
/// the end.
template <class Operation>
struct update_lists {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, adjacency* lists, batch_view batch, graph_tally* total) const {
    u64 const group = global_thread_index();
    bool const mine = group < batch.groups;
    u32 const vertex = mine ? batch.vertices[group] : 0;
    u32 const first = mine ? batch.first[group] : 0;
    u32 const count = mine ? batch.first[group + 1] - first : 0;
    bool const is_long = mine && lists[vertex].degree + count > long_list;
    graph_tally tally;
    if (mine && !is_long)
      Operation::run(lone_lane{}, heap, lists[vertex], batch.targets + first, batch.places + first, count, tally);
    for (u32 rest = simt::ballot(full_mask, is_long); rest; rest &= rest - 1) {
      u32 const lane = lowest_bit(rest);
      u32 const its_vertex = simt::shuffle(full_mask, vertex, lane);
      u32 const its_first = simt::shuffle(full_mask, first, lane);
      u32 const its_count = simt::shuffle(full_mask, count, lane);
      Operation::run(whole_warp{}, heap, lists[its_vertex], batch.targets + its_first, batch.places + its_first,
                     its_count, tally);
    }
    add(*total, tally);
  }
};

/// Kernel: frees every list.
struct drop_neighbour_lists {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, adjacency* lists, u32 vertices, graph_tally* total) const {
    u64 const vertex = global_thread_index();
    if (vertex >= vertices || !lists[vertex].neighbours) return;
    graph_tally tally;
    drop(heap, lists[vertex], tally);
    add(*total, tally);
  }
};

/// Kernel: copies every list to its place in one array.
struct gather_lists {
  WARPHEAP_DEVICE void operator()(adjacency const* lists, u64 const* first, u32* targets, u32 vertices) const {
    u64 const vertex = global_thread_index();
    if (vertex >= vertices) return;
    for (u32 i = 0; i < lists[vertex].degree; ++i) targets[first[vertex] + i] = lists[vertex].neighbours[i];
  }
};

/// A graph in a heap of its own.
template <class Allocator, class Heap = basic_heap<Allocator>>
class heap_graph final : public dynamic_graph {
 public:
  heap_graph(u64 pool_bytes, u32 vertices) : heap_{pool_bytes}, lists_(vertices), tally_(1) {}

  void insert(edge_groups const& batch) override { update<insert_edges>(batch); }
  void erase(edge_groups const& batch) override { update<erase_edges>(batch); }

  graph_counts counts() const override {
    auto const now = tally_[0];
    return {now.mallocs, now.frees, now.failures, now.lost, now.inserted, now.erased, now.live_bytes, seconds_};
  }

  adjacency_lists read() const override {
    adjacency_lists made;
    made.first.assign(1, 0);
    for (auto const& list : lists_.to_host()) made.first.push_back(made.first.back() + list.degree);
    device_buffer<u64> const first{made.first};
    device_buffer<u32> const targets(made.first.back());
    launch(shape_for(lists_.size(), 128), gather_lists{}, lists_.data(), first.data(), targets.data(), vertices());
    synchronize();
    made.targets = targets.to_host();
    return made;
  }

  std::string fault() const override {
    auto const now = tally_[0];
    if constexpr (requires { heap_.statistics(); }) {
      auto const seen = heap_.statistics();
      if (seen.live_blocks != now.mallocs - now.frees)
        return "the heap has " + std::to_string(seen.live_blocks) + " live blocks, the graph " +
               std::to_string(now.mallocs - now.frees);
      if (seen.live_bytes != now.live_bytes)
        return "the heap has " + std::to_string(seen.live_bytes) + " live bytes, the graph " +
               std::to_string(now.live_bytes);
    }
    if constexpr (requires { heap_.check_invariants(); }) {
      auto const violated = heap_.check_invariants();
      if (!violated.empty()) return violated.front();
    }
    return {};
  }

  call_trace trace() const override {
    if constexpr (requires { heap_.trace(); }) return heap_.trace();
    else return {};
  }

  void clear() override {
    seconds_ += 1e-6 * watch_.microseconds([&] {
      launch(shape_for(lists_.size(), 128), drop_neighbour_lists{}, heap_.ref(), lists_.data(), vertices(),
             tally_.data());
    });
  }

 private:
  u32 vertices() const { return static_cast<u32>(lists_.size()); }

  template <class Operation>
  void update(edge_groups const& batch) {
    device_buffer<u32> const groups{batch.vertices}, first{batch.first}, targets{batch.targets};
    device_buffer<u32> const places(batch.targets.size());
    batch_view const view{groups.data(), first.data(), targets.data(), places.data(),
                          static_cast<u32>(batch.vertices.size())};
    seconds_ += 1e-6 * watch_.microseconds([&] {
      launch(shape_for(view.groups, 128), update_lists<Operation>{}, heap_.ref(), lists_.data(), view, tally_.data());
    });
  }

  Heap heap_;
  device_buffer<adjacency> lists_;
  device_buffer<graph_tally> tally_;
  bench::stopwatch watch_;
  double seconds_ = 0;
};

}  // namespace WARPHEAP_BACKEND
}  // namespace warpheap::tool::graph
