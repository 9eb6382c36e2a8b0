// SPDX-License-Identifier: Apache-2.0
// The stores that a lane must have seen: a vector clock over locations in place of lanes, kept
// small.
//
// Stores are named by stamps: history.hpp.
//
// host.V1  the holder knows every store up to stamp `floor`, and every store to
//     `entries[i].location` up to `entries[i].stamp`.
// host.V2  entries are sorted by location, each later than the floor, at most `limit` of them.
// Past the limit the floor rises to the entries' median: the holder then counts as knowing more
// than it does, which hides faults but never invents one. Views are shared between messages and
// lanes, and copied before a change.
#pragma once

#include <algorithm>
#include <deque>
#include <vector>

#include "../types.hpp"

namespace warpheap::host::detail {

struct seen_store {
  u32 location;
  u64 stamp;
};

class seen_stores {
 public:
  u64 floor = 0;
  std::vector<seen_store> entries;

  /// The latest stamp up to which stores to `location` are known.
  u64 known(u32 location) const {
    auto const found = find(location);
    return found != entries.end() && found->location == location ? found->stamp : floor;
  }

  void raise(u32 location, u64 stamp) {
    if (stamp <= floor) return;
    auto const found = entries.begin() + (find(location) - entries.begin());
    if (found != entries.end() && found->location == location) {
      found->stamp = (std::max)(found->stamp, stamp);
    } else {
      entries.insert(found, {location, stamp});
      if (entries.size() > limit) shrink();
    }
  }

  /// From now on everything up to `stamp` is known.
  void raise_floor(u64 stamp) {
    if (stamp <= floor) return;
    floor = stamp;
    std::erase_if(entries, [stamp](seen_store const& each) { return each.stamp <= stamp; });
  }

  /// Whether all that `other` knows is known.
  bool covers(seen_stores const& other) const {
    if (other.floor > floor) return false;
    auto mine = entries.begin();
    for (auto const& each : other.entries) {
      if (each.stamp <= floor) continue;
      while (mine != entries.end() && mine->location < each.location) ++mine;
      if (mine == entries.end() || mine->location != each.location || mine->stamp < each.stamp) return false;
    }
    return true;
  }

  /// Both are sorted (host.V2), so one pass over both suffices: most steps of a run with weak
  /// memory join some view.
  void join(seen_stores const& other) {
    raise_floor(other.floor);
    static thread_local std::vector<seen_store> both;
    both.clear();
    auto mine = entries.begin();
    for (auto const& each : other.entries) {
      if (each.stamp <= floor) continue;
      while (mine != entries.end() && mine->location < each.location) both.push_back(*mine++);
      both.push_back(each);
      if (mine != entries.end() && mine->location == each.location)
        both.back().stamp = (std::max)(both.back().stamp, mine++->stamp);
    }
    both.insert(both.end(), mine, entries.end());
    entries.swap(both);
    if (entries.size() > limit) shrink();
  }

 private:
  static constexpr size_t limit = 256;

  std::vector<seen_store>::const_iterator find(u32 location) const {
    return std::lower_bound(entries.begin(), entries.end(), location,
                            [](seen_store const& each, u32 wanted) { return each.location < wanted; });
  }

  void shrink() {
    std::vector<u64> stamps;
    stamps.reserve(entries.size());
    for (auto const& each : entries) stamps.push_back(each.stamp);
    auto const last_dropped = stamps.end() - limit / 2;
    std::nth_element(stamps.begin(), last_dropped, stamps.end());
    raise_floor(*last_dropped);
  }
};

/// What the holder must have seen: the stores, and of other lanes' lives the moments that they
/// marked (memory_model.hpp), each lane's as a location of its own.
class view {
 public:
  seen_stores stores, moments;
  u64 number = 0;  // no other view of the run has it; a view of several holders stays as it is
  u32 holders = 0;

  bool covers(view const& other) const {
    return &other == this || (stores.covers(other.stores) && moments.covers(other.moments));
  }

  void join(view const& other) {
    if (&other == this) return;
    stores.join(other.stores);
    moments.join(other.moments);
  }
};

/// Owns the views of a run; a view whose last holder lets go is used again.
class view_store {
 public:
  view* make(u64 floor) {
    if (free_.empty()) free_.push_back(&all_.emplace_back());
    view* const made = free_.back();
    free_.pop_back();
    made->stores.floor = made->moments.floor = floor;
    made->number = ++made_;
    made->holders = 1;
    made->stores.entries.clear();
    made->moments.entries.clear();
    return made;
  }

  view* copy(view const& from) {
    view* const made = make(0);
    made->stores = from.stores;
    made->moments = from.moments;
    return made;
  }

  static view* share(view* shared) {
    if (shared) ++shared->holders;
    return shared;
  }

  /// What either knows, null if both are; a share of one of them where that knows it all.
  view* joined(view* left, view* right) {
    if (!left || !right) return share(left ? left : right);
    if (left->covers(*right)) return share(left);
    if (right->covers(*left)) return share(right);
    view* const both = copy(*left);
    both->join(*right);
    return both;
  }

  void drop(view* dropped) {
    if (dropped && --dropped->holders == 0) free_.push_back(dropped);
  }

 private:
  std::deque<view> all_;
  std::vector<view*> free_;
  u64 made_ = 0;
};

}  // namespace warpheap::host::detail
