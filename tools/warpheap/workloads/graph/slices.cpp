// SPDX-License-Identifier: Apache-2.0
#include "slices.hpp"

#include <algorithm>

namespace warpheap::tool {

namespace {

edge_groups groups_between(edge_groups const& batch, size_t begin, size_t end) {
  u32 const first = batch.first[begin], last = batch.first[end];
  auto const at = [](auto const& values, size_t i) { return values.begin() + static_cast<std::ptrdiff_t>(i); };
  edge_groups slice;
  slice.vertices.assign(at(batch.vertices, begin), at(batch.vertices, end));
  slice.targets.assign(at(batch.targets, first), at(batch.targets, last));
  slice.first.resize(end - begin + 1);
  std::transform(at(batch.first, begin), at(batch.first, end + 1), slice.first.begin(),
                 [first](u32 place) { return place - first; });
  return slice;
}

}  // namespace

std::vector<edge_groups> cut(edge_groups const& batch, u32 slices) {
  std::vector<edge_groups> made;
  made.reserve(slices);
  size_t begin = 0;
  for (u32 i = 1; i <= slices; ++i) {
    auto const target = static_cast<u32>(u64{batch.first.back()} * i / slices);
    auto const end = std::lower_bound(batch.first.begin(), batch.first.end(), target);
    made.push_back(groups_between(batch, begin, static_cast<size_t>(end - batch.first.begin())));
    begin = static_cast<size_t>(end - batch.first.begin());
  }
  return made;
}

u64 most_groups_of(std::vector<edge_groups> const& slices) {
  u64 most = 0;
  for (auto const& slice : slices) most = std::max<u64>(most, slice.vertices.size());
  return most;
}

}  // namespace warpheap::tool
