#include "edge_list.hpp"

#include <algorithm>
#include <numeric>

#include "warpheap/util/random.hpp"

namespace warpheap::tool {

entry_keys keys_of(edge_list const& graph, size_t first, size_t last) {
  entry_keys keys;
  keys.reserve((last - first) * (graph.directed ? 1 : 2));
  for (size_t i = first; i < last; ++i) {
    auto const [from, to] = graph.edges[i];
    keys.push_back(u64{from} << 32 | to);
    if (!graph.directed) keys.push_back(u64{to} << 32 | from);
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

edge_groups group_by_vertex(entry_keys const& keys) {
  edge_groups groups;
  groups.targets.reserve(keys.size());
  for (u64 const key : keys) {
    auto const vertex = static_cast<u32>(key >> 32);
    if (groups.vertices.empty() || groups.vertices.back() != vertex) {
      if (!groups.vertices.empty()) groups.first.push_back(static_cast<u32>(groups.targets.size()));
      groups.vertices.push_back(vertex);
    }
    groups.targets.push_back(static_cast<u32>(key));
  }
  if (!groups.vertices.empty()) groups.first.push_back(static_cast<u32>(groups.targets.size()));
  return groups;
}

edge_list make_rmat(u32 scale, u32 edge_factor, u64 seed) {
  edge_list graph;
  graph.vertices = 1u << scale;
  random_sequence random{seed};
  std::vector<u32> names(graph.vertices);
  std::iota(names.begin(), names.end(), 0);
  for (u32 i = graph.vertices; i > 1; --i) std::swap(names[i - 1], names[random.below(i)]);

  // Quadrants by cumulative weight in parts of 100: a, then b (right), then c (below), the rest d (both).
  constexpr u32 a = 57, b = 19, c = 19;
  graph.edges.resize(u64{edge_factor} << scale);
  for (auto& made : graph.edges) {
    u32 from = 0, to = 0;
    for (u32 bit = 0; bit < scale; ++bit) {
      u32 const drawn = random.below(100);
      u32 const right = (drawn >= a && drawn < a + b) || drawn >= a + b + c;
      u32 const below = drawn >= a + b;
      from = from << 1 | below;
      to = to << 1 | right;
    }
    made = {names[from], names[to]};
  }
  return graph;
}

}  // namespace warpheap::tool
