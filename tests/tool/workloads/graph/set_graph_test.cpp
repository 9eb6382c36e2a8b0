// SPDX-License-Identifier: Apache-2.0
// The dynamic graph in a set of heaps, on the host backend, where all members are on one device: it
// is the graph of one heap, under every schedule; messages travel between the heaps and come back;
// searches cross them.
#include "workloads/graph/backend/set_graph.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>

#include "tests/support/schedules.hpp"
#include "tests/tool/measured_fixture.hpp"
#include "warpheap/warpheap.hpp"
#include "workloads/graph/backend/heap_graph.hpp"
#include "workloads/graph/job.hpp"

namespace warpheap::tool { namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using graph_of_set = graph::set_graph<default_allocator>;
using graph_of_heap = graph::heap_graph<default_allocator>;

std::vector<int> members(u32 count) { return std::vector<int>(count, 0); }

graph_outcome build(std::unique_ptr<dynamic_graph> dynamic, edge_list const& graph, graph_settings settings) {
  settings.allocator = "slab_bitmap";
  return build_graph(std::move(dynamic), graph, keys_of(graph), settings, [](std::string const&, u64, u64) {});
}

graph_outcome build_in_set(u32 count, edge_list const& graph, graph_settings const& settings) {
  return build(std::make_unique<graph_of_set>(settings.pool_bytes, graph.vertices, members(count)), graph, settings);
}

graph_outcome build_in_heap(edge_list const& graph, graph_settings const& settings) {
  return build(std::make_unique<graph_of_heap>(settings.pool_bytes, graph.vertices), graph, settings);
}

/// R-MAT edges with loops and duplicates, and vertices without edges behind them.
edge_list random_graph(u64 seed, bool directed) {
  auto made = make_rmat(8, 8, seed);
  made.vertices += 50;
  made.directed = directed;
  for (u32 vertex = 0; vertex < 20; ++vertex) made.edges.push_back({vertex, vertex});
  return made;
}

void expect_same(graph_outcome const& made, graph_outcome const& wanted) {
  EXPECT_THAT(made.fault, IsEmpty());
  EXPECT_EQ(made.edges, wanted.edges);
  EXPECT_EQ(made.counts.mallocs, wanted.counts.mallocs);
  EXPECT_EQ(made.counts.frees, wanted.counts.frees);
  EXPECT_EQ(made.counts.inserted, wanted.counts.inserted);
  EXPECT_EQ(made.counts.erased, wanted.counts.erased);
  EXPECT_EQ(made.counts.live_bytes, wanted.counts.live_bytes);
  EXPECT_EQ(made.peak_bytes, wanted.peak_bytes);
  EXPECT_EQ(made.counts.failures, 0u);
  EXPECT_EQ(made.search->reached, wanted.search->reached);
}

TEST(SetGraph, IsTheGraphOfOneHeapWhateverTheMembers) {
  for (u64 const seed : {1, 2, 3}) {
    auto const graph = random_graph(seed, seed == 2);
    graph_settings const settings{.pool_bytes = 4 * mebibyte,
                                  .seed = seed,
                                  .rounds = 3,
                                  .batch_size = 400,
                                  .replace = seed == 3,
                                  .search_from = graph.edges[0].from};
    auto const wanted = build_in_heap(graph, settings);
    ASSERT_THAT(wanted.fault, IsEmpty());
    ASSERT_GT(wanted.counts.erased, 0u);
    ASSERT_GT(wanted.search->reached, 100u);
    for (u32 const count : {1u, 2u, 3u, 5u}) {
      SCOPED_TRACE(std::to_string(count) + " members, seed " + std::to_string(seed));
      expect_same(build_in_set(count, graph, settings), wanted);
    }
  }
}

TEST(SetGraph, SaysWhatEachMemberDid) {
  auto const graph = random_graph(4, false);
  auto const made = build_in_set(
      3, graph, {.pool_bytes = 4 * mebibyte, .rounds = 2, .batch_size = 500, .search_from = graph.edges[0].from});
  EXPECT_THAT(made.fault, IsEmpty());
  ASSERT_THAT(made.members, SizeIs(3));
  u64 vertices = 0, edges = 0, mallocs = 0, live = 0, messages = 0, to_others = 0, peaks = 0;
  for (auto const& each : made.members) {
    EXPECT_EQ(each.device, 0);
    EXPECT_GT(each.messages, 0u);
    EXPECT_LE(each.graph.live_bytes, each.peak_bytes);
    EXPECT_GT(each.send_seconds, 0);
    EXPECT_GT(each.apply_seconds, 0);
    EXPECT_GT(each.free_seconds, 0);
    EXPECT_GT(each.search_seconds, 0);
    vertices += each.vertices;
    edges += each.graph.inserted - each.graph.erased;
    mallocs += each.graph.mallocs;
    live += each.graph.live_bytes;
    messages += each.messages;
    to_others += each.messages_to_others;
    peaks += each.peak_bytes;
  }
  EXPECT_EQ(vertices, graph.vertices);
  EXPECT_EQ(edges, made.edges);
  EXPECT_EQ(mallocs, made.counts.mallocs);
  EXPECT_EQ(live, made.counts.live_bytes);
  EXPECT_GE(peaks, made.peak_bytes);
  // Of three members two thirds of the messages are for another one, more or less.
  EXPECT_GT(to_others, messages / 2);
  EXPECT_LT(to_others, messages * 3 / 4);
}

TEST(SetGraph, OfOneMemberSendsNothingToOthers) {
  auto const made = build_in_set(1, random_graph(4, false), {.pool_bytes = 4 * mebibyte, .batch_size = 500});
  EXPECT_THAT(made.fault, IsEmpty());
  ASSERT_THAT(made.members, SizeIs(1));
  EXPECT_GT(made.members[0].messages, 0u);
  EXPECT_EQ(made.members[0].messages_to_others, 0u);
}

TEST(SetGraph, IsTheSameUnderEverySchedule) {
  edge_list graph{40, false, {}};
  for (u32 other = 0; other < 40; ++other) graph.edges.push_back({3, other});
  for (u32 vertex = 0; vertex < 40; ++vertex) graph.edges.push_back({vertex, (vertex + 1) % 40});
  test::for_each_schedule(12, [&] {
    auto const made = build_in_set(
        2, graph, {.pool_bytes = mebibyte, .rounds = 1, .batch_size = 45, .replace = true, .search_from = 3});
    EXPECT_THAT(made.fault, IsEmpty());
  });
}

/// Two hubs that are neighbours of all, one of which is erased from again and again.
edge_list huge_hubs(u32 vertices) {
  edge_list graph{vertices, true, {}};
  for (u32 to = 0; to < vertices; ++to) {
    graph.edges.push_back({1, to});
    graph.edges.push_back({vertices - 1, to});
    graph.edges.push_back({to, vertices / 2});
  }
  return graph;
}

TEST(SetGraph, HasListsThatTakeAThreadBlock) {
  auto const graph = huge_hubs(4500);
  graph_settings const settings{
      .pool_bytes = 4 * mebibyte, .rounds = 3, .batch_size = 3000, .replace = true, .search_from = 1};
  auto const wanted = build_in_heap(graph, settings);
  EXPECT_THAT(wanted.fault, IsEmpty());
  EXPECT_EQ(wanted.counts.failures, 0u);
  for (u32 const count : {1u, 2u, 3u}) expect_same(build_in_set(count, graph, settings), wanted);
}

TEST(SetGraph, HasListsThatTakeAThreadBlockUnderEverySchedule) {
  auto const graph = huge_hubs(2200);
  test::for_each_schedule(4, [&] {
    graph_settings const settings{.pool_bytes = 2 * mebibyte, .rounds = 1, .batch_size = 2500};
    EXPECT_THAT(build_in_heap(graph, settings).fault, IsEmpty());
    EXPECT_THAT(build_in_set(2, graph, settings).fault, IsEmpty());
  });
}

TEST(SetGraph, ShrinksAndFreesListsThatTookAThreadBlock) {
  entry_keys all, most;
  all.reserve(5000);
  most.reserve(4990);
  for (u64 to = 0; to < 5000; ++to) {
    all.push_back(7ull << 32 | to);
    if (to % 500) most.push_back(7ull << 32 | to);
  }
  graph_of_set graph{2 * mebibyte, 10, members(2)};
  graph.insert(group_by_vertex(all));
  EXPECT_GE(graph.counts().live_bytes, 20'000u);
  graph.erase(group_by_vertex(most));
  EXPECT_LE(graph.counts().live_bytes, 4 * 32u);
  EXPECT_THAT(graph.read().targets, testing::ElementsAre(0, 500, 1000, 1500, 2000, 2500, 3000, 3500, 4000, 4500));
  graph.erase(group_by_vertex(all));
  EXPECT_EQ(graph.counts().live_bytes, 0u);
  EXPECT_THAT(graph.fault(), IsEmpty());
}

TEST(SetGraph, TakesGraphsOfNothingAndOfOneVertex) {
  graph_settings const settings{.pool_bytes = mebibyte, .rounds = 2};
  EXPECT_THAT(build_in_set(2, {0, false, {}}, settings).fault, IsEmpty());
  EXPECT_THAT(build_in_set(3, {5, true, {}}, settings).fault, IsEmpty());
  auto const loop = build_in_set(2, {1, false, {{0, 0}}}, settings);
  EXPECT_THAT(loop.fault, IsEmpty());
  EXPECT_EQ(loop.edges, 1u);
}

TEST(SetGraph, SaysHowManyEntriesFullHeapsLost) {
  auto const graph = make_rmat(14, 16, 1);
  auto const made = build_in_set(2, graph, {.pool_bytes = mebibyte, .batch_size = 20'000});
  EXPECT_FALSE(made.verified());
  EXPECT_THAT(made.fault, HasSubstr("were lost"));
  EXPECT_GT(made.counts.failures, 0u);
  EXPECT_GE(made.edges + made.counts.lost, keys_of(graph).size());
  // Even then no message stays behind: what was wrong is that entries were lost, and no more.
  graph_of_set again{mebibyte, graph.vertices, members(2)};
  again.insert(group_by_vertex(keys_of(graph)));
  EXPECT_GT(again.counts().lost, 0u);
  EXPECT_THAT(again.fault(), IsEmpty());
  again.clear();
  EXPECT_EQ(again.counts().live_bytes, 0u);
  EXPECT_THAT(again.fault(), IsEmpty());
}

// graph.F2
TEST(SetGraph, SearchesPathsAndHubsFromEveryVertex) {
  // A path, so that each level has one vertex, and a hub with more neighbours than a piece has.
  constexpr u32 path = 20, vertices = 3000;
  edge_list graph{vertices, true, {}};
  for (u32 vertex = 0; vertex + 1 < path; ++vertex) graph.edges.push_back({vertex, vertex + 1});
  for (u32 to = path; to + 1 < vertices; ++to) graph.edges.push_back({path - 1, to});
  auto const keys = keys_of(graph);
  for (u32 const count : {1u, 2u, 5u}) {
    graph_of_set made{4 * mebibyte, vertices, members(count)};
    made.insert(group_by_vertex(keys));
    for (u32 source = 0; source < path; ++source) {
      auto const levels = made.search(source).of_vertex;
      ASSERT_THAT(levels, SizeIs(vertices));
      for (u32 vertex = 0; vertex < path; ++vertex)
        ASSERT_EQ(levels[vertex], vertex < source ? unreached : vertex - source);
      for (u32 vertex = path; vertex + 1 < vertices; ++vertex) ASSERT_EQ(levels[vertex], path - source) << vertex;
      ASSERT_EQ(levels.back(), unreached);
    }
  }
}

TEST(SetGraph, RefusesDevicesThatAreNotThere) {
  EXPECT_THROW((graph_of_set{mebibyte, 1, {}}), std::invalid_argument);
  EXPECT_THROW((graph_of_set{mebibyte, 1, {0, 1}}), std::invalid_argument);
  EXPECT_THROW((graph_of_set{mebibyte, 1, members(17)}), std::invalid_argument);
}

struct make_hub {
  void operator()(heap_ref heap, adjacency_list* lists, u32 degree) const {
    for (u32 to = 1; to <= degree; ++to) lists[0].insert(heap, to);
  }
};

/// Searches a graph in which vertex 0 alone has neighbours, the next `degree` vertices, for one
/// level. Returns how many lanes settled it.
u64 lanes_that_settle(u32 vertices, u32 degree) {
  heap const heap{mebibyte};
  device_buffer<adjacency_list> const on_device(vertices);
  launch({1, 1}, make_hub{}, heap.ref(), on_device.data(), degree);

  graph::member_team team{{0}};
  vertex_deal const deal{vertices, 1};
  graph::member_search search{deal, 0, on_device.data(), degree};
  graph::peer_clusters const among{team, {{.messages = {}, .found = search.boxes()}}};
  search.start(team.stream(0), among[0], 0);
  search.close(team.stream(0));
  team.finish();
  search.expand(team.stream(0), among[0]);
  team.finish();
  search.settle(team.stream(0), among[0], 1, search.pieces());
  team.finish();
  u64 const lanes = host::last_run().lanes;
  auto const levels = search.levels();
  EXPECT_EQ(levels[0], 0u);
  EXPECT_EQ(std::count(levels.begin() + 1, levels.begin() + 1 + degree, 1), degree);
  EXPECT_EQ(std::count(levels.begin(), levels.end(), unreached), vertices - 1 - degree);
  return lanes;
}

// graph.F3
TEST(GraphSearch, SettlesALevelByAsManyLanesAsItsFrontierWants) {
  EXPECT_LE(lanes_that_settle(100'000, 1), 128u) << "a path has as many levels as vertices";
  EXPECT_LE(lanes_that_settle(100'000, 1024), 128u);
  EXPECT_GE(lanes_that_settle(100'000, 5000), 5 * 128u) << "of five warps that expand a hub";
  EXPECT_LE(lanes_that_settle(3, 2), 128u);
}

}}  // namespace warpheap::tool
