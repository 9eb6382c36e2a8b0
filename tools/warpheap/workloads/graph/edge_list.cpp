// SPDX-License-Identifier: Apache-2.0
#include "edge_list.hpp"

#include <numeric>

#include "warpheap/util/random.hpp"

namespace warpheap::tool {

namespace {

constexpr u64 key_of(u64 from, u64 to) { return from << 32 | to; }

/// Draws quadrants by cumulative weight in parts of 100: a, then b (right), then c (below), the
/// rest d (both).
edge draw_edge(u32 scale, random_sequence& random) {
  constexpr u32 a = 57, b = 19, c = 19;
  u32 from = 0, to = 0;
  for (u32 bit = 0; bit < scale; ++bit) {
    u32 const drawn = random.below(100);
    // Without branches, which no processor could predict.
    u32 const below = drawn >= a + b;
    u32 const right = u32{drawn >= a} ^ below ^ u32 { drawn >= a + b + c };
    from = from << 1 | below;
    to = to << 1 | right;
  }
  return {from, to};
}

}  // namespace

entry_keys keys_of(edge_list const& graph, size_t first, size_t last, parallel_work work) {
  u64 const entries = graph.directed ? 1 : 2;  // of an edge
  entry_keys keys((last - first) * entries);
  chunked const chunks{last - first, usual_chunk};
  work.pass(chunks.count(), [&](u64 chunk) {
    for (u64 i = chunks.first(chunk); i < chunks.last(chunk); ++i) {
      auto const [from, to] = graph.edges[first + i];
      keys[entries * i] = key_of(from, to);
      if (!graph.directed) keys[entries * i + 1] = key_of(to, from);
    }
  });
  sort_unique(keys, graph.vertices, work);
  return keys;
}

entry_keys keys_of(edge_list const& graph, parallel_work work) {
  return keys_of(graph, 0, graph.edges.size(), std::move(work));
}

edge_groups group_by_vertex(entry_keys const& keys, parallel_work work) {
  auto const vertex_of = [&](u64 i) { return static_cast<u32>(keys[i] >> 32); };
  auto const starts = [&](u64 i) { return i == 0 || vertex_of(i) != vertex_of(i - 1); };
  chunked const chunks{keys.size(), usual_chunk};
  std::vector<u64> groups_before(chunks.count() + 1);
  work.pass(chunks.count(), [&](u64 chunk) {
    for (u64 i = chunks.first(chunk); i < chunks.last(chunk); ++i) groups_before[chunk + 1] += starts(i);
  });
  std::partial_sum(groups_before.begin(), groups_before.end(), groups_before.begin());
  edge_groups groups;
  groups.vertices.resize(groups_before.back());
  groups.first.resize(groups_before.back() + 1);
  groups.targets.resize(keys.size());
  work.pass(chunks.count(), [&](u64 chunk) {
    u64 group = groups_before[chunk];
    for (u64 i = chunks.first(chunk); i < chunks.last(chunk); ++i) {
      groups.targets[i] = static_cast<u32>(keys[i]);
      if (!starts(i)) continue;
      groups.vertices[group] = vertex_of(i);
      groups.first[group++] = static_cast<u32>(i);
    }
  });
  groups.first.back() = static_cast<u32>(keys.size());
  return groups;
}

edge_list make_rmat(u32 scale, u32 edge_factor, u64 seed, parallel_work work) {
  edge_list graph;
  graph.vertices = 1u << scale;
  random_sequence random{seed};
  large_array<u32> names(graph.vertices);
  std::iota(names.begin(), names.end(), 0);
  for (u32 i = graph.vertices; i > 1; --i) std::swap(names[i - 1], names[random.below(i)]);

  graph.edges.resize(u64{edge_factor} << scale);
  chunked const chunks{graph.edges.size(), usual_chunk};
  work.pass(chunks.count(), [&](u64 chunk) {
    auto its_own = random;  // one sequence for all edges, of which each chunk takes its part
    its_own.skip(chunks.first(chunk) * scale);
    for (u64 i = chunks.first(chunk); i < chunks.last(chunk); ++i) {
      auto const [from, to] = draw_edge(scale, its_own);
      graph.edges[i] = {names[from], names[to]};
    }
  });
  return graph;
}

}  // namespace warpheap::tool
