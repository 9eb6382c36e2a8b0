// The graph that a dynamic one must be equal to: sorted adjacency entries on the host, one thread, no heap of ours.
#pragma once

#include <string>

#include "edge_list.hpp"

namespace warpheap::tool {

class reference_graph {
 public:
  void insert(entry_keys const& keys);
  void erase(entry_keys const& keys);

  u64 size() const { return keys_.size(); }
  entry_keys const& keys() const { return keys_; }

  /// How `lists` differ: the first vertex whose neighbours, as a set, are not ours, or that has one twice. Empty if all
  /// are the same.
  std::string difference(adjacency_lists const& lists) const;

 private:
  entry_keys keys_;
};

}  // namespace warpheap::tool
