// SPDX-License-Identifier: Apache-2.0
// graph_scaling: the dynamic graph of `warpheap graph` in a heap set, by the number of members. An
// R-MAT graph is inserted in eight batches and searched breadth-first. Strong scaling: one graph of
// scale `scale` by 1, 2, … all members. Weak scaling: 2^k members have a graph of scale `scale` +
// k. Members are on `devices`, from the first on, each with a heap of the pool's size. Every result
// is compared with a reference on the host and with the one of a single member.
#include <bit>
#include <map>

#include "backend/workloads.hpp"
#include "bench/measure.hpp"
#include "bench/registry.hpp"
#include "cli/gpus.hpp"
#include "warpheap/heap/heap_set_ref.hpp"
#include "workloads/graph/job.hpp"

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND { namespace {

constexpr u32 edges_a_vertex = 16, batches = 8;

class graph_scaling {
 public:
  explicit graph_scaling(bench::request const& asked)
      : asked_{asked},
        scale_{static_cast<u32>(bench::default_for_backend(asked.scale, 20, 8))},
        devices_{asked.devices.empty() ? usual_devices() : asked.devices} {}

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
    return build_graph(make_set_graph(settings.allocator, settings.pool_bytes, from.graph.vertices, devices),
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

bench::registration const registered_graph_scaling{{
    .name = "graph_scaling",
    .text = "the dynamic graph of `warpheap graph` dealt to several GPUs, built and searched, by their number",
    .kind = bench::scenario_kind::of_default_allocator,
    .rank = 40,
    .uses = {{"--scale", "20"}, {"--gpus"}},
    .pool = {.gpu = u64{4} << 30, .host = u64{16} << 20},
    .floor = [](bench::request const& asked) { return graph_scaling{asked}.rows(); },
}};

}}}  // namespace warpheap::tool::WARPHEAP_BACKEND
