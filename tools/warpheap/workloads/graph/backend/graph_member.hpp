// SPDX-License-Identifier: Apache-2.0
// One member's part of a graph that lies in several heaps, as the host drives it: its vertices'
// lists, its slice of a batch, and what it has for others.
#pragma once

#include <optional>

#include "huge_list_room.hpp"
#include "lists.hpp"
#include "messages.hpp"

namespace warpheap::tool::graph { inline namespace WARPHEAP_BACKEND {

/// Made, and called, with its device current. `heap` is what kernels on that device take. `Shared`
/// is an array like device_buffer, in memory that other members read.
template <template <class> class Shared>
class basic_graph_member {
 public:
  basic_graph_member(vertex_deal deal, u32 rank)
      : deal_{deal}, lists_(deal.count(rank)), counts_(deal.members()), tally_(1) {}

  adjacency_list const* lists() const { return lists_.data(); }
  adjacency_lists read() const { return lists_of(lists_); }
  graph_tally tally() const { return tally_[0]; }
  message_boxes boxes() const { return {slots_.data(), counts_.data(), capacity_}; }

  /// Takes its slice of a batch to the device, and makes room for the messages of all slices, any
  /// of which may be for this member. Nothing that was sent before is still to be read. All members
  /// make the same room: `most_groups` is how many groups the largest slice has.
  void receive(edge_groups const& slice, u64 most_groups, edge_groups const& batch) {
    vertices_ = device_buffer<u32>{slice.vertices};
    first_ = device_buffer<u32>{slice.first};
    targets_ = device_buffer<u32>{slice.targets};
    counts_ = Shared<u32>(counts_.size());
    groups_ = batch.vertices.size();
    entries_bound_ += batch.targets.size();
    huge_.emplace(groups_, entries_bound_);
    if (most_groups <= capacity_) return;
    capacity_ = most_groups;
    slots_ = Shared<message*>(capacity_ * deal_.members());
  }

  template <class Heap, cluster Cluster>
  void send(stream_view on, Heap heap, Cluster const& among) const {
    slice_view const slice{vertices_.data(), first_.data(), targets_.data(), static_cast<u32>(vertices_.size())};
    launch(on, shape_for(slice.groups, 128), send_groups{}, heap, among, deal_, slice, tally_.data());
  }

  template <class Operation, class Heap, cluster Cluster>
  void apply(stream_view on, Heap heap, Cluster const& among) const {
    launch(on, shape_for(groups_, 128), apply_messages<Operation>{}, heap, among, lists_.data(), huge_->view(),
           tally_.data());
    launch(on, huge_->shape(), apply_huge_messages<Operation>{}, heap, lists_.data(), huge_->view(), tally_.data());
  }

  /// Once all members have applied what was sent.
  template <class Heap>
  void free_messages(stream_view on, Heap heap) const {
    launch(on, shape_for(vertices_.size(), 128), graph::free_messages{}, heap, boxes(), deal_.members());
  }

  template <class Heap>
  void clear(stream_view on, Heap heap) const {
    launch(on, shape_for(lists_.size(), 128), drop_neighbour_lists{}, heap, lists_.data(),
           static_cast<u32>(lists_.size()), tally_.data());
  }

 private:
  vertex_deal deal_;
  device_buffer<adjacency_list> lists_;
  device_buffer<u32> vertices_, first_, targets_;  ///< of the slice
  Shared<message*> slots_;
  Shared<u32> counts_;
  u64 capacity_ = 0;       ///< messages to one member
  u64 groups_ = 0;         ///< of the batch
  u64 entries_bound_ = 0;  ///< of all batches
  std::optional<huge_list_room> huge_;
  device_buffer<graph_tally> tally_;
};

using graph_member = basic_graph_member<device_buffer>;

}}  // namespace warpheap::tool::graph::WARPHEAP_BACKEND
