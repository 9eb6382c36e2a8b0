// SPDX-License-Identifier: Apache-2.0
#include "dealt_parts.hpp"

#include <algorithm>

#include "workloads/parallel_work.hpp"

namespace warpheap::tool {

adjacency_lists in_order_of_vertices(vertex_deal deal, std::vector<adjacency_lists> const& parts) {
  adjacency_lists made;
  made.first.assign(u64{deal.vertices()} + 1, 0);
  for (u32 vertex = 0; vertex < deal.vertices(); ++vertex) {
    auto const [owner, local] = deal.find(vertex);
    auto const& first = parts[owner].first;
    made.first[vertex + 1] = made.first[vertex] + (first[local + 1] - first[local]);
  }
  made.targets.resize(made.first.back());
  chunked const chunks{deal.vertices(), usual_chunk};
  parallel_work{}.pass(chunks.count(), [&](u64 chunk) {
    for (u64 vertex = chunks.first(chunk); vertex < chunks.last(chunk); ++vertex) {
      auto const [owner, local] = deal.find(static_cast<u32>(vertex));
      auto const& part = parts[owner];
      std::copy(part.targets.data() + part.first[local], part.targets.data() + part.first[local + 1],
                made.targets.data() + made.first[vertex]);
    }
  });
  return made;
}

std::vector<u32> in_order_of_vertices(vertex_deal deal, std::vector<std::vector<u32>> const& parts) {
  std::vector<u32> made;
  made.reserve(deal.vertices());
  for (u32 vertex = 0; vertex < deal.vertices(); ++vertex) {
    auto const [owner, local] = deal.find(vertex);
    made.push_back(parts[owner][local]);
  }
  return made;
}

}  // namespace warpheap::tool
