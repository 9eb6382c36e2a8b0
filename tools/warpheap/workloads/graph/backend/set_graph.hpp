// SPDX-License-Identifier: Apache-2.0
// The dynamic graph of `warpheap graph --gpus`, in a set of heaps: every member has the lists of
// the vertices that are dealt to it in its own heap.
#pragma once

#include "graph_member.hpp"
#include "graph_search.hpp"
#include "measure/measure.hpp"
#include "member_accounts.hpp"
#include "warpheap/heap/heap_set.hpp"
#include "workloads/graph/slices.hpp"

namespace warpheap::tool::graph { inline namespace WARPHEAP_BACKEND {

template <set_member Allocator>
class set_graph final : public dynamic_graph {
 public:
  set_graph(u64 pool_bytes, u32 vertices, std::vector<int> const& devices)
      : set_{pool_bytes, devices}, team_{devices}, deal_{vertices, set_.size()}, peak_bytes_(set_.size()) {
    members_.reserve(set_.size());
    team_.for_each([&](u32 i) { members_.emplace_back(deal_, i); });
  }

  void insert(edge_groups const& batch) override { update<insert_edges>(batch); }
  void erase(edge_groups const& batch) override { update<erase_edges>(batch); }

  graph_counts counts() const override {
    graph_counts sums;
    for (u32 i = 0; i < set_.size(); ++i) add(sums, counts_of(members_[i].tally()));
    sums.seconds = seconds_;
    return sums;
  }

  std::vector<member_counts> members() const override {
    std::vector<member_counts> made(set_.size());
    for (u32 i = 0; i < set_.size(); ++i) {
      auto const now = members_[i].tally();
      // Every member has its initialiser: in templates nvcc 13.0 forgets which ones were left out.
      made[i] = {.device = set_.device(i),
                 .host = {},
                 .vertices = deal_.count(i),
                 .graph = counts_of(now),
                 .messages = now.messages,
                 .messages_to_others = now.messages_to_others,
                 .peak_bytes = peak_bytes_[i],
                 .send_seconds = team_.seconds(i, phase::send),
                 .apply_seconds = team_.seconds(i, phase::apply),
                 .free_seconds = team_.seconds(i, phase::free),
                 .search_seconds = team_.seconds(i, phase::expand) + team_.seconds(i, phase::settle)};
    }
    return made;
  }

  adjacency_lists read() const override {
    std::vector<adjacency_lists> parts;
    parts.reserve(set_.size());
    team_.for_each([&](u32 i) { parts.push_back(members_[i].read()); });
    return in_order_of_vertices(deal_, parts);
  }

  search_levels search(u32 source) override {
    std::vector<member_search> parts;
    parts.reserve(set_.size());
    team_.for_each([&](u32 i) {
      auto const now = members_[i].tally();
      parts.emplace_back(deal_, i, members_[i].lists(), now.inserted - now.erased);
    });
    std::vector<member_boxes> boxes;
    boxes.reserve(set_.size());
    for (auto const& part : parts) boxes.push_back({.messages = {}, .found = part.boxes()});
    peer_clusters const among{team_, boxes};
    return run_search(team_, deal_, parts, among, source);
  }

  std::string fault() const override {
    for (u32 i = 0; i < set_.size(); ++i)
      if (auto const found = fault_of(i); !found.empty()) return "member " + std::to_string(i) + ": " + found;
    if constexpr (requires { set_.check_invariants(); }) {
      auto const violated = set_.check_invariants();
      if (!violated.empty()) return violated.front();
    }
    return {};
  }

  void clear() override {
    team_.step(phase::other, [&](u32 i) { members_[i].clear(team_.stream(i), heap(i)); });
    team_.finish();
  }

 private:
  template <class Operation>
  void update(edge_groups const& batch) {
    auto const slices = cut(batch, set_.size());
    u64 const most_groups = most_groups_of(slices);
    team_.for_each([&](u32 i) { members_[i].receive(slices[i], most_groups, batch); });
    std::vector<member_boxes> boxes;
    boxes.reserve(set_.size());
    for (auto const& each : members_) boxes.push_back({.messages = each.boxes(), .found = {}});
    peer_clusters const among{team_, boxes};
    seconds_ += 1e-6 * bench::wall_clock{}.microseconds_of_call([&] {
      team_.step(phase::send, [&](u32 i) { members_[i].send(team_.stream(i), heap(i), among[i]); });
      team_.step(phase::apply,
                 [&](u32 i) { members_[i].template apply<Operation>(team_.stream(i), heap(i), among[i]); });
      team_.step(phase::free, [&](u32 i) { members_[i].free_messages(team_.stream(i), heap(i)); });
      team_.finish();
    });
    for (u32 i = 0; i < set_.size(); ++i) peak_bytes_[i] = std::max(peak_bytes_[i], members_[i].tally().live_bytes);
  }

  std::string fault_of(u32 i) const {
    if constexpr (requires { set_.statistics(i); }) return fault_of_member(members_[i].tally(), set_.statistics(i));
    else return {};
  }

  /// Member i's, for its own threads.
  auto heap(u32 i) const { return set_.ref(i).local(); }

  basic_heap_set<Allocator> set_;
  member_team team_;
  vertex_deal deal_;
  std::vector<graph_member> members_;
  std::vector<u64> peak_bytes_;
  double seconds_ = 0;
};

}}  // namespace warpheap::tool::graph::WARPHEAP_BACKEND
