// The dynamic graph in a heap, on the host backend: every kind of growth and shrinkage, by lanes and by whole warps, under
// several schedules, and what it says when memory runs out.
#include <gmock/gmock.h>

#include "graph_job.hpp"
#include "reference_graph.hpp"
#include "tests/support/schedules.hpp"

namespace warpheap::tool {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr u64 mebibyte = u64{1} << 20;

/// Edges from a few hubs to everyone, and a ring: lists that a lane serves next to lists that take a warp.
edge_list hubs_and_ring(u32 vertices) {
  edge_list graph{vertices, false, {}};
  for (u32 hub = 0; hub < 3; ++hub)
    for (u32 other = 0; other < vertices; ++other) graph.edges.push_back({hub, other});
  for (u32 vertex = 0; vertex < vertices; ++vertex) graph.edges.push_back({vertex, (vertex + 1) % vertices});
  return graph;
}

graph_outcome build(edge_list const& graph, graph_settings const& settings) {
  return build_graph(*make_host_backend(), graph, settings, [](std::string const&, u64, u64) {});
}

/// Those that serve blocks of so many bytes.
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

TEST(DynamicGraph, ShrinksListsThatEmptyAndFreesEmptyOnes) {
  auto const on = make_host_backend();
  auto const graph = on->make_graph("slab_bitmap", mebibyte, 2);
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

}  // namespace
}  // namespace warpheap::tool
