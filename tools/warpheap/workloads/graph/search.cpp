// SPDX-License-Identifier: Apache-2.0
#include "search.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace warpheap::tool {

namespace {

/// The reference's lists, to be found by vertex.
adjacency_lists lists_of(reference_graph const& graph, u32 vertices) {
  adjacency_lists made;
  made.first.assign(u64{vertices} + 1, 0);
  made.targets.reserve(graph.size());
  for (auto const& part : graph.parts())
    for (u64 const key : part) {
      ++made.first[(key >> 32) + 1];
      made.targets.push_back(static_cast<u32>(key));
    }
  for (u64 vertex = 0; vertex < vertices; ++vertex) made.first[vertex + 1] += made.first[vertex];
  return made;
}

std::string name_of_level(u32 level) { return level == unreached ? "unreached" : fmt::format("at level {}", level); }

}  // namespace

reached_part search(reference_graph const& graph, u32 vertices, u32 source) {
  auto const lists = lists_of(graph, vertices);
  reached_part made;
  made.levels.assign(vertices, unreached);
  made.levels[source] = 0;
  std::vector<u32> queue{source};
  for (size_t next = 0; next < queue.size(); ++next) {
    u32 const vertex = queue[next];
    made.depth = made.levels[vertex];
    made.entries += lists.first[vertex + 1] - lists.first[vertex];
    for (u64 i = lists.first[vertex]; i < lists.first[vertex + 1]; ++i) {
      u32& level = made.levels[lists.targets[i]];
      if (level != unreached) continue;
      level = made.depth + 1;
      queue.push_back(lists.targets[i]);
    }
  }
  made.vertices = queue.size();
  return made;
}

std::string difference_of_levels(reached_part const& wanted, std::vector<u32> const& levels) {
  if (levels.size() != wanted.levels.size())
    return fmt::format("the search has levels of {} vertices, and there are {}", levels.size(), wanted.levels.size());
  auto const at = std::mismatch(levels.begin(), levels.end(), wanted.levels.begin());
  if (at.first == levels.end()) return {};
  return fmt::format("vertex {} is {} in the search, and {} in the reference", at.first - levels.begin(),
                     name_of_level(*at.first), name_of_level(*at.second));
}

}  // namespace warpheap::tool
