#include "reference_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace warpheap::tool {

void reference_graph::insert(entry_keys const& keys) {
  entry_keys both;
  both.reserve(keys_.size() + keys.size());
  std::set_union(keys_.begin(), keys_.end(), keys.begin(), keys.end(), std::back_inserter(both));
  keys_ = std::move(both);
}

void reference_graph::erase(entry_keys const& keys) {
  entry_keys rest;
  rest.reserve(keys_.size());
  std::set_difference(keys_.begin(), keys_.end(), keys.begin(), keys.end(), std::back_inserter(rest));
  keys_ = std::move(rest);
}

std::string reference_graph::difference(adjacency_lists const& lists) const {
  auto wanted = keys_.begin();
  for (size_t vertex = 0; vertex + 1 < lists.first.size(); ++vertex) {
    std::vector<u32> found{lists.targets.begin() + static_cast<i64>(lists.first[vertex]),
                           lists.targets.begin() + static_cast<i64>(lists.first[vertex + 1])};
    std::sort(found.begin(), found.end());
    auto const end = std::upper_bound(wanted, keys_.end(), u64{vertex} << 32 | 0xffff'ffffu);
    bool const same = std::equal(wanted, end, found.begin(), found.end(),
                                 [](u64 key, u32 target) { return static_cast<u32>(key) == target; });
    if (!same)
      return fmt::format("vertex {} has {} neighbours and not the {} of the reference", vertex, found.size(),
                         end - wanted);
    wanted = end;
  }
  if (wanted != keys_.end()) return fmt::format("{} adjacency entries are missing", keys_.end() - wanted);
  return {};
}

}  // namespace warpheap::tool
