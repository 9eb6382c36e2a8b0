// SPDX-License-Identifier: Apache-2.0
// The dynamic graph of `warpheap graph` in a heap: batches go up grouped by vertex, and a kernel
// updates each vertex's list. A lane takes one vertex. Vertices of a warp whose lists are long are
// taken one after the other by all of its lanes, and huge ones by thread blocks of a second kernel.
#pragma once

#include "graph_search.hpp"
#include "huge_list_room.hpp"
#include "lists.hpp"
#include "measure/measure.hpp"
#include "workloads/graph/dynamic_graph.hpp"

namespace warpheap::tool::graph { inline namespace WARPHEAP_BACKEND {

/// A batch in device memory.
struct batch_view {
  u32 const* vertices;
  u32 const* first;
  u32* targets;
  u32* places;
  u32 groups = 0;
};

/// What a batch does to the list of one group.
template <class Operation>
struct group_update {
  template <class Team, class Heap>
  WARPHEAP_DEVICE static void run(Team team, Heap const& heap, adjacency_list* lists, batch_view batch, u64 group,
                                  graph_tally& tally) {
    u32 const first = batch.first[group];
    Operation::run(team, heap, lists[batch.vertices[group]], batch.targets + first, batch.places + first,
                   batch.first[group + 1] - first, tally);
  }
};

/// Kernel: lane i of the grid has group i, and leaves huge ones to the next kernel. The grid is of
/// whole warps, and all their lanes stay to the end.
template <class Operation>
struct update_lists {
  static constexpr u32 most_threads = 128, resident_blocks = Operation::resident_blocks;

  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, adjacency_list* lists, batch_view batch, huge_items huge,
                                  graph_tally* total) const {
    u64 const mine = global_thread_index();
    auto const length = length_of(lists, batch, mine);
    graph_tally tally;
    if (length == item_length::is_huge) huge.add(mine);
    share_by_length(length, mine, [&](auto team, u64 group) {
      group_update<Operation>::run(team, heap, lists, batch, group, tally);
    });
    add(*total, tally);
  }

 private:
  WARPHEAP_DEVICE static item_length length_of(adjacency_list const* lists, batch_view batch, u64 group) {
    if (group >= batch.groups) return item_length::none;
    u32 const count = batch.first[group + 1] - batch.first[group];
    return length_for(lists[batch.vertices[group]].size() + count);
  }
};

/// Kernel: the huge ones.
template <class Operation>
struct update_huge_lists {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, adjacency_list* lists, batch_view batch, huge_items huge,
                                  graph_tally* total) const {
    graph_tally tally;
    huge.share([&](auto team, u64 group) { group_update<Operation>::run(team, heap, lists, batch, group, tally); });
    add(*total, tally);
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

  adjacency_lists read() const override { return lists_of(lists_); }

  search_levels search(u32 source) override {
    member_team team{{warpheap::backend::current_device()}};
    vertex_deal const deal{vertices(), 1};
    auto const now = tally_[0];
    std::vector<member_search> alone;
    alone.emplace_back(deal, 0, lists_.data(), now.inserted - now.erased);
    peer_clusters const among{team, {{.messages = {}, .found = alone[0].boxes()}}};
    return run_search(team, deal, alone, among, source);
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
    take_time([&](bool all) {
      launch(shape_for(lists_.size(), 128), drop_neighbour_lists{}, heap_.ref(), lists_.data(), all ? vertices() : 0,
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
    entries_bound_ += batch.targets.size();
    huge_list_room const huge{view.groups, entries_bound_};
    take_time([&](bool all) {
      auto const part = all ? view : batch_view{};
      launch(shape_for(view.groups, update_lists<Operation>::most_threads), update_lists<Operation>{}, heap_.ref(),
             lists_.data(), part, huge.view(), tally_.data());
      launch(huge.shape(), update_huge_lists<Operation>{}, heap_.ref(), lists_.data(), part, huge.view(),
             tally_.data());
    });
  }

  /// `work(false)` launches the same kernels with nothing to do: CUDA loads a kernel's code at its
  /// first launch, which takes as long as some batches.
  template <class Work>
  void take_time(Work work) {
    work(false);
    seconds_ += 1e-6 * watch_.microseconds([&] { work(true); });
  }

  Heap heap_;
  device_buffer<adjacency_list> lists_;
  device_buffer<graph_tally> tally_;
  u64 entries_bound_ = 0;  ///< of all batches
  bench::stopwatch watch_;
  double seconds_ = 0;
};

}}  // namespace warpheap::tool::graph::WARPHEAP_BACKEND
