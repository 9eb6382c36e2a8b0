// SPDX-License-Identifier: Apache-2.0
#include "reference.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace warpheap::tool {

namespace {

/// About how many keys a part has; more where a vertex has more.
constexpr u64 keys_of_part = u64{1} << 16;

/// Where the keys of `vertex` and of later vertices begin. There may be as many as 2^32 vertices.
entry_keys::const_iterator lower_bound(entry_keys const& keys, u64 vertex) {
  if (vertex >> 32) return keys.end();
  return std::lower_bound(keys.begin(), keys.end(), vertex << 32);
}

}  // namespace

void reference_graph::insert(entry_keys const& keys, parallel_work work) {
  if (size() == 0) cut_like(keys);
  combine(keys, work, [](auto const&... ranges) { return std::set_union(ranges...); });
}

void reference_graph::erase(entry_keys const& keys, parallel_work work) {
  combine(keys, work, [](auto const&... ranges) { return std::set_difference(ranges...); });
}

u64 reference_graph::size() const {
  u64 sum = 0;
  for (auto const& part : parts_) sum += part.size();
  return sum;
}

/// Called while there are no keys: cuts parts that will each have about as many of `keys`.
void reference_graph::cut_like(entry_keys const& keys) {
  bounds_.assign(1, 0);
  for (u64 i = keys_of_part; i < keys.size(); i += keys_of_part)
    if (u64 const vertex = keys[i] >> 32; vertex > bounds_.back()) bounds_.push_back(vertex);
  parts_.assign(bounds_.size(), {});
  bounds_.push_back(u64{1} << 32);
}

template <class Combine>
void reference_graph::combine(entry_keys const& keys, parallel_work& work, Combine combine) {
  work.pass(parts_.size(), [&](u64 i) {
    auto const first = lower_bound(keys, bounds_[i]), last = lower_bound(keys, bounds_[i + 1]);
    auto& part = parts_[i];
    entry_keys made(part.size() + static_cast<size_t>(last - first));
    made.erase(combine(part.cbegin(), part.cend(), first, last, made.begin()), made.end());
    part = std::move(made);
  });
}

std::string reference_graph::difference(adjacency_lists const& lists, parallel_work work) const {
  std::vector<std::string> found(parts_.size());
  work.pass(parts_.size(), [&](u64 i) { found[i] = difference_of_part(i, lists); });
  for (auto const& first : found)
    if (!first.empty()) return first;
  // All lists are right, so keys that are left are of vertices without a list.
  if (u64 const there = lists.first.empty() ? 0 : lists.first.back(); there != size())
    return fmt::format("{} adjacency entries are missing", size() - there);
  return {};
}

/// The difference among the vertices that both the part and the lists have.
std::string reference_graph::difference_of_part(size_t part, adjacency_lists const& lists) const {
  auto const& keys = parts_[part];
  auto wanted = keys.begin();
  auto const is_target = [](u64 key, u32 target) { return static_cast<u32>(key) == target; };
  std::vector<u32> sorted;
  for (u64 vertex = bounds_[part]; vertex < bounds_[part + 1] && vertex + 1 < lists.first.size(); ++vertex) {
    auto const first = lists.targets.begin() + static_cast<i64>(lists.first[vertex]),
               last = lists.targets.begin() + static_cast<i64>(lists.first[vertex + 1]);
    auto const end = std::upper_bound(wanted, keys.end(), vertex << 32 | 0xffff'ffffu);
    if (!std::equal(wanted, end, first, last, is_target)) {  // compares as they stand, or as sets
      sorted.assign(first, last);
      std::sort(sorted.begin(), sorted.end());
      if (!std::equal(wanted, end, sorted.begin(), sorted.end(), is_target))
        return fmt::format("vertex {} has {} neighbours and not the {} of the reference", vertex, last - first,
                           end - wanted);
    }
    wanted = end;
  }
  return {};
}

}  // namespace warpheap::tool
