// SPDX-License-Identifier: Apache-2.0
// graph_scaling: the dynamic graph of `warpheap graph` in a heap set, by the number of members. An
// R-MAT graph is inserted in eight batches and searched breadth-first. Strong scaling: one graph of
// scale `scale` by 1, 2, … all members. Weak scaling: 2^k members have a graph of scale `scale` +
// k. Members are on `devices`, from the first on, each with a heap of the pool's size. Every result
// is compared with a reference on the host and with the one of a single member.
#pragma once

#include <bit>
#include <map>

#include "backend/parts.hpp"
#include "measure/measure.hpp"
#include "scenario.hpp"
#include "warpheap/heap/heap_set_ref.hpp"
#include "workloads/graph/gpus.hpp"
#include "workloads/graph/job.hpp"

namespace warpheap::bench::options {

/// Weak scaling makes larger graphs yet.
inline constexpr option<u32> scale{
    {.name = "--scale", .rank = 170, .type = "N", .text = "2^N vertices", .parse = count_of<u32, 1, 26>}};

inline constexpr option<std::vector<int>> gpus{
    {.name = "--gpus",
     .rank = 180,
     .type = "N|I,J[,...]",
     .text = "The first N GPUs, or those of a list, which may name one twice (default all, or the one twice)",
     .parse = [](char const*, std::string const& typed, option_bounds const& bounds) -> std::any {
       return tool::parse_gpus(typed, bounds.devices, bounds.backend);
     }}};

}  // namespace warpheap::bench::options

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND {

inline constexpr u32 edges_a_vertex = 16, batches = 8;

class graph_scaling {
 public:
  explicit graph_scaling(bench::request const& asked)
      : asked_{asked},
        scale_{static_cast<u32>(bench::default_for_backend(asked[bench::options::scale], 20, 8))},
        devices_{asked.get(bench::options::gpus, usual_devices())} {}

  std::vector<bench::result> rows() {
    auto const members = static_cast<u32>(devices_.size());
    u64 const runs = members + static_cast<u64>(std::bit_width(members));
    for (u32 count = 1; count <= members && proceed(runs); ++count) measure("strong", count, scale_);
    for (u32 count = 1; count <= members && proceed(runs); count *= 2)
      measure("weak", count, scale_ + static_cast<u32>(std::countr_zero(count)));
    return rows_;
  }

 private:
  /// A graph, and what all members make of it.
  struct input {
    edge_list graph;
    entry_keys keys;
  };

  /// Every device; two members on one, if there is no other.
  static std::vector<int> usual_devices() {
    std::vector<int> devices;
    for (int i = 0; i < warpheap::backend::device_count() && devices.size() < most_set_members; ++i)
      devices.push_back(i);
    if (devices.size() == 1) devices.push_back(0);
    return devices;
  }

  bool proceed(u64 runs) {
    bool const is_sound = rows_.empty() || rows_.back().checked();
    ended_ = ended_ || !is_sound || !asked_.proceed("graph_scaling", runs_done_++, runs);
    return !ended_;
  }

  input const& graph_of(u32 scale) {
    if (graph_.graph.vertices != 1u << scale) {
      graph_.graph = make_rmat(scale, edges_a_vertex, asked_.seed);
      graph_.keys = keys_of(graph_.graph);
    }
    return graph_;
  }

  void measure(std::string const& kind, u32 members, u32 scale) {
    auto const& from = graph_of(scale);
    std::vector<int> const devices{devices_.begin(), devices_.begin() + members};
    bench::result building = row(kind + " build", devices, scale), searching = row(kind + " search", devices, scale);
    for (u32 round = 0; round <= asked_.repeat && building.checked(); ++round) {
      auto const made = build(from, devices);
      building.fault = searching.fault = made.fault;
      building.operations = static_cast<double>(made.counts.inserted);
      searching.operations = static_cast<double>(made.search->entries);
      building.failures = made.counts.failures;
      building.figures = slowest_times(made.members);
      if (round == 0) continue;
      building.times_us.push_back(1e6 * made.counts.seconds);
      searching.times_us.push_back(1e6 * made.search->seconds);
    }
    for (auto* const each : {&building, &searching}) {
      if (!each->checked()) each->times_us.clear();
      else add_scaling(*each, members);
      rows_.push_back(*each);
    }
  }

  graph_outcome build(input const& from, std::vector<int> const& devices) const {
    graph_settings const settings{.allocator = "slab_bitmap",
                                  .pool_bytes = asked_.pool_bytes,
                                  .seed = asked_.seed,
                                  .batch_size = from.graph.edges.size() / batches,
                                  .search_from = static_cast<u32>(from.keys.front() >> 32)};
    return build_graph(
        registered_part<set_graph_job>().make(settings.allocator, settings.pool_bytes, from.graph.vertices, devices),
        from.graph, from.keys, settings, [](std::string const&, u64, u64) {});
  }

  bench::result row(std::string const& operation, std::vector<int> const& devices, u32 scale) const {
    return {.scenario = "graph_scaling",
            .allocator = "slab_bitmap",
            .operation = operation,
            .parameters = {{"members", devices.size()},
                           {"devices", different(devices)},
                           {"scale", scale},
                           {"pool_bytes", asked_.pool_bytes}}};
  }

  /// Of the last round, what the member that took longest for it did.
  static std::vector<std::pair<std::string, double>> slowest_times(std::vector<member_counts> const& members) {
    double send = 0, apply = 0, free = 0;
    for (auto const& each : members) {
      send = std::max(send, each.send_seconds);
      apply = std::max(apply, each.apply_seconds);
      free = std::max(free, each.free_seconds);
    }
    return {{"send_us", 1e6 * send}, {"apply_us", 1e6 * apply}, {"free_us", 1e6 * free}};
  }

  /// Its rate over that of one member.
  void add_scaling(bench::result& row, u32 members) {
    double const rate = row.operations / bench::median(row.times_us);
    if (members == 1) rate_of_one_[row.operation] = rate;
    row.figures.emplace_back("speedup", rate / rate_of_one_[row.operation]);
  }

  bench::request const& asked_;
  u32 scale_;
  std::vector<int> devices_;
  input graph_;
  std::map<std::string, double> rate_of_one_;
  u64 runs_done_ = 0;
  bool ended_ = false;
  std::vector<bench::result> rows_;
};

}}  // namespace warpheap::tool::WARPHEAP_BACKEND

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

inline scenario about_graph_scaling() {
  return {
      .name = "graph_scaling",
      .text = "the dynamic graph of `warpheap graph` dealt to several GPUs, built and searched, by their number",
      .kind = scenario_kind::of_default_allocator,
      .rank = 40,
      .uses = {{options::scale, "20"}, {options::gpus}},
      .pool = {.gpu = u64{4} << 30, .host = u64{16} << 20},
      .baseline = [](request const& asked) { return tool::graph_scaling{asked}.rows(); },
  };
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
