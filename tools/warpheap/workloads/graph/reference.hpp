// SPDX-License-Identifier: Apache-2.0
// The graph that a dynamic one must be equal to: sorted adjacency entries on the host, and no heap
// of ours. They are cut into parts that are changed and compared at the same time; to change one
// part moves no other.
#pragma once

#include <string>
#include <vector>

#include "edge_list.hpp"

namespace warpheap::tool {

class reference_graph {
 public:
  void insert(entry_keys const& keys, parallel_work work = {});
  void erase(entry_keys const& keys, parallel_work work = {});

  u64 size() const;
  /// All keys in order, part by part.
  std::vector<entry_keys> const& parts() const { return parts_; }

  /// How `lists` differ: names the first vertex whose neighbours, as a set, are not ours, or that
  /// has a neighbour twice. Empty if all are the same.
  std::string difference(adjacency_lists const& lists, parallel_work work = {}) const;

 private:
  void cut_like(entry_keys const& keys);
  template <class Combine>
  void combine(entry_keys const& keys, parallel_work& work, Combine combine);
  std::string difference_of_part(size_t part, adjacency_lists const& lists) const;

  /// graph.P1  Part i has the keys of the vertices [bounds_[i], bounds_[i + 1]), ascending. A
  ///     vertex is in one part.
  std::vector<entry_keys> parts_{1};
  std::vector<u64> bounds_{0, u64{1} << 32};
};

}  // namespace warpheap::tool
