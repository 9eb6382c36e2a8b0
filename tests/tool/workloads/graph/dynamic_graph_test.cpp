// SPDX-License-Identifier: Apache-2.0
// The dynamic graph in a heap, on the host backend: every kind of growth and shrinkage, by lanes
// and by whole warps, under several schedules, and what it says when memory runs out.
#include <gmock/gmock.h>

#include "backend/backend.hpp"
#include "tests/support/schedules.hpp"
#include "tests/tool/measured_fixture.hpp"
#include "workloads/graph/job.hpp"
#include "workloads/graph/reference.hpp"

namespace warpheap::tool { namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// Edges from a few hubs to all vertices, and a ring: lists that a lane serves next to lists that
/// take a warp.
edge_list hubs_and_ring(u32 vertices) {
  edge_list graph{vertices, false, {}};
  for (u32 hub = 0; hub < 3; ++hub)
    for (u32 other = 0; other < vertices; ++other) graph.edges.push_back({hub, other});
  for (u32 vertex = 0; vertex < vertices; ++vertex) graph.edges.push_back({vertex, (vertex + 1) % vertices});
  return graph;
}

graph_outcome build(edge_list const& graph, graph_settings const& settings) {
  return build_graph(
      make_host_backend()->part<graph_job>().make(settings.allocator, settings.pool_bytes, graph.vertices), graph,
      keys_of(graph), settings, [](std::string const&, u64, u64) {});
}

/// Names of the allocators that serve blocks of `bytes`.
std::vector<std::string> allocators_of(u64 bytes) {
  std::vector<std::string> names;
  for (auto const& each : make_host_backend()->allocators())
    if (each.largest_bytes >= bytes) names.push_back(each.name);
  return names;
}

TEST(DynamicGraph, HasExactlyTheEdgesOfTheReference) {
  for (auto const& allocator : allocators_of(4096)) {
    auto const graph = hubs_and_ring(400);
    auto const made =
        build(graph, {.allocator = allocator, .pool_bytes = 8 * mebibyte, .rounds = 6, .batch_size = 300});
    EXPECT_THAT(made.fault, IsEmpty()) << allocator;
    EXPECT_EQ(made.edges, keys_of(graph, 0, graph.edges.size()).size());
    EXPECT_EQ(made.counts.failures, 0u);
    EXPECT_GT(made.counts.erased, 0u);
    EXPECT_GT(made.counts.mallocs, made.counts.frees);
    EXPECT_GE(made.peak_bytes, made.counts.live_bytes);
    EXPECT_GE(made.counts.live_bytes, made.edges * sizeof(u32));
  }
}

TEST(DynamicGraph, LiesInSetsOfEveryAllocatorThatCanBeInOne) {
  auto const on = make_host_backend();
  auto const graph = hubs_and_ring(200);
  auto const names = on->part<set_graph_job>().allocators();
  EXPECT_THAT(names, testing::IsSupersetOf({"slab_bitmap", "halloc", "throughput_8"}));
  EXPECT_THAT(names, testing::Not(testing::Contains("toolkit")));
  for (auto const& allocator : names) {
    graph_settings const settings{
        .allocator = allocator, .pool_bytes = 8 * mebibyte, .rounds = 2, .batch_size = 100, .search_from = 1};
    auto const made =
        build_graph(on->part<set_graph_job>().make(allocator, settings.pool_bytes, graph.vertices, {0, 0, 0}), graph,
                    keys_of(graph), settings, [](std::string const&, u64, u64) {});
    EXPECT_THAT(made.fault, IsEmpty()) << allocator;
    EXPECT_EQ(made.edges, keys_of(graph).size()) << allocator;
    EXPECT_EQ(made.counts.failures, 0u) << allocator;
    EXPECT_GT(made.members[2].messages_to_others, 0u) << allocator;
  }
  EXPECT_THROW(on->part<set_graph_job>().make("toolkit", mebibyte, 1, {0}), std::invalid_argument);
}

TEST(DynamicGraph, IsTheSameUnderEverySchedule) {
  auto const graph = hubs_and_ring(150);
  test::for_each_schedule(6, [&] {
    auto const made = build(
        graph, {.allocator = "slab_bitmap", .pool_bytes = mebibyte, .rounds = 2, .batch_size = 200, .replace = true});
    EXPECT_THAT(made.fault, IsEmpty());
  });
}

TEST(DynamicGraph, TakesGraphsOfNothingAndOfOneVertex) {
  graph_settings const settings{.allocator = "slab_bitmap", .pool_bytes = mebibyte, .rounds = 2};
  EXPECT_THAT(build({0, false, {}}, settings).fault, IsEmpty());
  EXPECT_THAT(build({5, true, {}}, settings).fault, IsEmpty());
  auto const loop = build({1, false, {{0, 0}}}, settings);
  EXPECT_THAT(loop.fault, IsEmpty());
  EXPECT_EQ(loop.edges, 1u);
}

TEST(DynamicGraph, SaysHowManyEntriesAFullHeapLost) {
  auto const graph = make_rmat(13, 16, 1);
  auto const made = build(graph, {.allocator = "slab_bitmap", .pool_bytes = mebibyte, .batch_size = 10'000});
  EXPECT_FALSE(made.verified());
  EXPECT_THAT(made.fault, HasSubstr("were lost"));
  EXPECT_GT(made.counts.failures, 0u);
  EXPECT_EQ(made.edges + made.counts.lost >= keys_of(graph, 0, graph.edges.size()).size(), true);
}

TEST(DynamicGraph, CountsRefusalsOfFirstBlocks) {
  auto const graph = make_host_backend()->part<graph_job>().make("slab_bitmap", mebibyte, 100'000);
  entry_keys one_each;
  for (u64 from = 0; from < 100'000; ++from) one_each.push_back(from << 32);
  graph->insert(group_by_vertex(one_each));
  auto const full = graph->counts();
  EXPECT_GT(full.lost, 0u);
  EXPECT_GE(full.failures, full.lost);
}

TEST(DynamicGraph, ShrinksListsThatEmptyAndFreesEmptyOnes) {
  auto const on = make_host_backend();
  auto const graph = on->part<graph_job>().make("slab_bitmap", mebibyte, 2);
  entry_keys all, most;
  for (u64 to = 0; to < 1000; ++to) {
    all.push_back(to);
    if (to >= 10) most.push_back(to);
  }
  graph->insert(group_by_vertex(all));
  auto const full = graph->counts();
  graph->erase(group_by_vertex(most));
  auto const shrunk = graph->counts();
  EXPECT_GE(full.live_bytes, 4000u);
  EXPECT_LE(shrunk.live_bytes, 4 * 32u);
  EXPECT_EQ(graph->read().targets.size(), 10u);
  graph->erase(group_by_vertex(all));
  EXPECT_EQ(graph->counts().live_bytes, 0u);
  EXPECT_EQ(graph->counts().mallocs, graph->counts().frees);
  EXPECT_THAT(graph->fault(), IsEmpty());
}

/// A sound graph except for the fault that a test adds.
class breaking_graph : public dynamic_graph {
 public:
  explicit breaking_graph(u32 vertices)
      : sound_{make_host_backend()->part<graph_job>().make("slab_bitmap", 8 * mebibyte, vertices)} {}
  void insert(edge_groups const& batch) override { sound_->insert(batch); }
  void erase(edge_groups const& batch) override { sound_->erase(batch); }
  graph_counts counts() const override { return sound_->counts(); }
  adjacency_lists read() const override { return sound_->read(); }
  search_levels search(u32 source) override { return sound_->search(source); }
  std::string fault() const override { return sound_->fault(); }
  void clear() override { sound_->clear(); }

 private:
  std::unique_ptr<dynamic_graph> sound_;
};

/// The groups, or lists, without the last edge of the last one.
template <class Groups>
Groups without_the_last(Groups from) {
  from.targets.pop_back();
  --from.first.back();
  return from;
}

/// The fault reported of a graph of the class `Broken`.
template <class Broken>
std::string fault_of(u32 rounds = 1) {
  auto const graph = hubs_and_ring(400);
  graph_settings const settings{.allocator = "broken", .rounds = rounds, .batch_size = 300, .search_from = 5};
  return build_graph(std::make_unique<Broken>(400), graph, keys_of(graph), settings,
                     [](std::string const&, u64, u64) {})
      .fault;
}

TEST(DynamicGraph, ThatIsBrokenIsFoundOut) {
  EXPECT_THAT(fault_of<breaking_graph>(), IsEmpty());
  // Of two entries of the last vertex's list one overwrites the other.
  struct swaps_targets : breaking_graph {
    using breaking_graph::breaking_graph;
    adjacency_lists read() const override {
      auto lists = breaking_graph::read();
      lists.targets.back() = lists.targets.end()[-2];
      return lists;
    }
  };
  EXPECT_THAT(fault_of<swaps_targets>(), HasSubstr("vertex 399 has 4 neighbours and not the 4"));
  struct misses_one : breaking_graph {
    using breaking_graph::breaking_graph;
    adjacency_lists read() const override { return without_the_last(breaking_graph::read()); }
  };
  EXPECT_THAT(fault_of<misses_one>(), HasSubstr("vertex 399 has 3 neighbours and not the 4"));
  struct keeps_erased : breaking_graph {
    using breaking_graph::breaking_graph;
    void erase(edge_groups const& batch) override { breaking_graph::erase(without_the_last(batch)); }
  };
  EXPECT_THAT(fault_of<keeps_erased>(), HasSubstr("after a deletion the graph has"));
  struct loses_on_loading : breaking_graph {
    using breaking_graph::breaking_graph;
    void insert(edge_groups const& batch) override { breaking_graph::insert(without_the_last(batch)); }
  };
  EXPECT_THAT(fault_of<loses_on_loading>(0), HasSubstr("after loading the graph has"));
  struct takes_a_detour : breaking_graph {
    using breaking_graph::breaking_graph;
    search_levels search(u32 source) override {
      auto levels = breaking_graph::search(source);
      ++levels.of_vertex[7];
      return levels;
    }
  };
  EXPECT_THAT(fault_of<takes_a_detour>(), HasSubstr("vertex 7 is at level 3 in the search, and at level 2 in"));
  struct forgets_a_block : breaking_graph {
    using breaking_graph::breaking_graph;
    void clear() override {}
  };
  EXPECT_THAT(fault_of<forgets_a_block>(), HasSubstr("bytes are left"));
}

TEST(DynamicGraph, ReportsEveryPhaseToItsEnd) {
  auto const graph = make_rmat(8, 8, 1);
  std::vector<std::string> phases;
  std::vector<double> ends;
  graph_settings const settings{.allocator = "slab_bitmap", .pool_bytes = 8 * mebibyte, .rounds = 1, .batch_size = 500};
  build_graph(make_host_backend()->part<graph_job>().make("slab_bitmap", 8 * mebibyte, graph.vertices), graph,
              keys_of(graph), settings, [&](std::string const& task, u64 done, u64 total) {
                if (phases.empty() || phases.back() != task) phases.push_back(task), ends.push_back(0);
                EXPECT_GE(done, ends.back()) << task;
                EXPECT_LE(done, total) << task;
                ends.back() = static_cast<double>(done) / static_cast<double>(total);
              });
  EXPECT_THAT(phases, testing::ElementsAre("shuffling, slab_bitmap", "building, slab_bitmap", "reference, slab_bitmap",
                                           "building, slab_bitmap", "checking, slab_bitmap"));
  EXPECT_EQ(ends[0], 1);
  EXPECT_EQ(ends[2], 1);
  EXPECT_EQ(ends[4], 1);
}

}}  // namespace warpheap::tool
