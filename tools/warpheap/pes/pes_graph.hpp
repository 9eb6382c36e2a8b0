// SPDX-License-Identifier: Apache-2.0
// The dynamic graph of `warpheap graph --pes`: every process of an NVSHMEM job has the lists of the
// vertices that are dealt to it in its own heap.
//
// All PEs make the same calls with the same batches, and each takes its own slice. What a call
// returns is the same on all of them: sums, the whole graph, any PE's fault. So every PE goes the
// same way through the job, and comes to the same verdict.
#pragma once

#include <unistd.h>

#include <numeric>

#include "pe_pools.hpp"
#include "pe_steps.hpp"
#include "workloads/graph/backend/graph_member.hpp"
#include "workloads/graph/backend/graph_search.hpp"
#include "workloads/graph/backend/member_accounts.hpp"
#include "workloads/graph/slices.hpp"

namespace warpheap::tool::graph { inline namespace WARPHEAP_BACKEND {

/// The name of this machine.
inline std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

/// All PEs make, call and destroy one.
template <set_member Allocator>
class pes_graph final : public dynamic_graph {
 public:
  pes_graph(u64 pool_bytes, u32 vertices)
      : heap_{pool_bytes},
        pools_{heap_},
        deal_{vertices, heap_.pes()},
        member_{deal_, heap_.pe()},
        hosts_{texts_of_pes(host_name())},
        devices_{values_of_pes(warpheap::backend::current_device())} {
    share_account();
  }

  void insert(edge_groups const& batch) override { update<insert_edges>(batch); }
  void erase(edge_groups const& batch) override { update<erase_edges>(batch); }

  graph_counts counts() const override {
    graph_counts sums;
    for (auto const& each : accounts_) {
      add(sums, counts_of(each.tally));
      sums.seconds = std::max(sums.seconds, each.seconds);
    }
    return sums;
  }

  std::vector<member_counts> members() const override {
    auto const account = values_of_pes(own_account());
    std::vector<member_counts> made(account.size());
    for (u32 pe = 0; pe < made.size(); ++pe) {
      auto const& each = account[pe];
      made[pe] = {.device = devices_[pe],
                  .host = hosts_[pe],
                  .vertices = deal_.count(pe),
                  .graph = counts_of(each.tally),
                  .messages = each.tally.messages,
                  .messages_to_others = each.tally.messages_to_others,
                  .peak_bytes = each.peak_bytes,
                  .send_seconds = each.send_seconds,
                  .apply_seconds = each.apply_seconds,
                  .free_seconds = each.free_seconds,
                  .search_seconds = each.search_seconds};
    }
    return made;
  }

  adjacency_lists read() const override {
    auto const mine = member_.read();
    auto firsts = lists_of_pes(mine.first);
    auto targets = lists_of_pes(mine.targets);
    std::vector<adjacency_lists> parts(firsts.size());
    for (size_t pe = 0; pe < parts.size(); ++pe) parts[pe] = {std::move(firsts[pe]), std::move(targets[pe])};
    return in_order_of_vertices(deal_, parts);
  }

  search_levels search(u32 source) override {
    auto const now = member_.tally();
    search_part part{deal_, heap_.pe(), member_.lists(), now.inserted - now.erased};
    device_buffer<member_boxes> const boxes{boxes_of_pes({.messages = {}, .found = part.boxes()}, heap_.pes())};
    pe_cluster const among{heap_.pe(), pools_.view(), boxes.data()};
    search_levels made;
    made.seconds = 1e-6 * bench::wall_clock{}.microseconds_of_call([&] { run(part, among, source); });
    auto const seconds = values_of_pes(made.seconds);
    made.seconds = *std::max_element(seconds.begin(), seconds.end());
    made.of_vertex = in_order_of_vertices(deal_, lists_of_pes(part.levels()));
    return made;
  }

  std::string fault() const override {
    auto const faults = texts_of_pes(own_fault());
    for (size_t pe = 0; pe < faults.size(); ++pe)
      if (!faults[pe].empty()) return "PE " + std::to_string(pe) + ": " + faults[pe];
    return {};
  }

  void clear() override {
    steps_.step(phase::other, [&] { member_.clear(steps_.stream(), heap_.ref().local()); });
    share_account();
  }

 private:
  using search_part = basic_member_search<symmetric_buffer>;

  /// What a PE tells the others of itself.
  struct account {
    graph_tally tally;
    u64 peak_bytes;
    double seconds, send_seconds, apply_seconds, free_seconds, search_seconds;
  };

  template <class Operation>
  void update(edge_groups const& batch) {
    auto const slices = cut(batch, heap_.pes());
    member_.receive(slices[heap_.pe()], most_groups_of(slices), batch);
    device_buffer<member_boxes> const boxes{boxes_of_pes({.messages = member_.boxes(), .found = {}}, heap_.pes())};
    pe_cluster const among{heap_.pe(), pools_.view(), boxes.data()};
    auto const heap = heap_.ref().local();
    nvshmem_barrier_all();  // the time begins when all hosts are here
    seconds_ += 1e-6 * bench::wall_clock{}.microseconds_of_call([&] {
      steps_.step(phase::send, [&] { member_.send(steps_.stream(), heap, among); });
      steps_.step(phase::apply, [&] { member_.template apply<Operation>(steps_.stream(), heap, among); });
      steps_.step(phase::free, [&] { member_.free_messages(steps_.stream(), heap); });
    });
    peak_bytes_ = std::max(peak_bytes_, member_.tally().live_bytes);
    share_account();
  }

  /// Level by level, until no PE has a next one.
  void run(search_part& part, pe_cluster const& among, u32 source) {
    auto const on = steps_.stream();
    auto const close_step = [&] {
      steps_.step(phase::other, [&] { part.close(on); });
      auto const pieces = gather_from_pes(part.pieces());
      return std::accumulate(pieces.begin(), pieces.end(), u64{0});
    };
    steps_.step(phase::other, [&] { part.start(on, among, source); });
    u32 level = 0;
    while (u64 const pieces = close_step()) {
      ++level;
      steps_.step(phase::expand, [&] { part.expand(on, among); });
      steps_.step(phase::settle, [&] { part.settle(on, among, level, pieces); });
    }
  }

  account own_account() const {
    return {.tally = member_.tally(),
            .peak_bytes = peak_bytes_,
            .seconds = seconds_,
            .send_seconds = steps_.seconds(phase::send),
            .apply_seconds = steps_.seconds(phase::apply),
            .free_seconds = steps_.seconds(phase::free),
            .search_seconds = steps_.seconds(phase::expand) + steps_.seconds(phase::settle)};
  }
  void share_account() { accounts_ = values_of_pes(own_account()); }

  std::string own_fault() const {
    if constexpr (requires { heap_.statistics(); }) {
      auto const found = fault_of_member(member_.tally(), heap_.statistics());
      auto const violated = heap_.check_invariants();
      return found.empty() && !violated.empty() ? violated.front() : found;
    } else {
      return {};
    }
  }

  basic_symmetric_heap<Allocator> heap_;
  pe_pools pools_;
  vertex_deal deal_;
  basic_graph_member<symmetric_buffer> member_;
  pe_steps steps_;
  std::vector<std::string> hosts_;  ///< of each PE
  std::vector<int> devices_;        ///< likewise
  std::vector<account> accounts_;   ///< since the last update or clear()
  u64 peak_bytes_ = 0;
  double seconds_ = 0;
};

}}  // namespace warpheap::tool::graph::WARPHEAP_BACKEND
