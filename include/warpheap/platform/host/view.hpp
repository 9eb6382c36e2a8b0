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

#include "raw_vector.hpp"

namespace warpheap::host::detail {

struct seen_store {
  u32 location;
  u64 stamp;
};

class seen_stores {
 public:
  u64 floor = 0;
  raw_vector<seen_store> entries;

  WARPHEAP_NO_TSAN void copy(seen_stores const& other) {
    floor = other.floor;
    entries.assign(other.entries.begin(), other.entries.size());
  }

  /// The latest stamp up to which stores to `location` are known.
  WARPHEAP_NO_TSAN u64 known(u32 location) const {
    auto const* const found = entries.begin() + find(location);
    return found != entries.end() && found->location == location ? found->stamp : floor;
  }

  WARPHEAP_NO_TSAN void raise(u32 location, u64 stamp) {
    if (stamp <= floor) return;
    size_t const place = find(location);
    auto* const found = entries.begin() + place;
    if (found != entries.end() && found->location == location) {
      if (found->stamp < stamp) found->stamp = stamp;
    } else {
      entries.insert(place, {location, stamp});
      if (entries.size() > limit) shrink();
    }
  }

  /// From now on everything up to `stamp` is known.
  WARPHEAP_NO_TSAN void raise_floor(u64 stamp) {
    if (stamp <= floor) return;
    floor = stamp;
    size_t kept = 0;
    for (auto const& each : entries)
      if (each.stamp > stamp) entries[kept++] = each;
    entries.resize(kept);
  }

  /// Whether all that `other` knows is known.
  WARPHEAP_NO_TSAN bool covers(seen_stores const& other) const {
    if (other.floor > floor) return false;
    auto const *mine = entries.begin(), *const end = entries.end();
    auto const *each = other.entries.begin(), *const last = other.entries.end();
    for (; each != last; ++each) {
      if (each->stamp <= floor) continue;
      while (mine != end && mine->location < each->location) ++mine;
      if (mine == end || mine->location != each->location || mine->stamp < each->stamp) return false;
    }
    return true;
  }

  /// Both are sorted (host.V2), so one pass over both suffices: most steps of a run with weak
  /// memory join some view.
  WARPHEAP_NO_TSAN void join(seen_stores const& other) {
    raise_floor(other.floor);
    static thread_local seen_store both[2 * limit];
    auto* made = both;
    auto const *mine = entries.begin(), *const end = entries.end();
    auto const *each = other.entries.begin(), *const last = other.entries.end();
    for (; each != last; ++each) {
      if (each->stamp <= floor) continue;
      while (mine != end && mine->location < each->location) *made++ = *mine++;
      *made = *each;
      if (mine != end && mine->location == each->location) {
        if (made->stamp < mine->stamp) made->stamp = mine->stamp;
        ++mine;
      }
      ++made;
    }
    while (mine != end) *made++ = *mine++;
    entries.assign(both, static_cast<size_t>(made - both));
    if (entries.size() > limit) shrink();
  }

 private:
  static constexpr size_t limit = 256;

  /// Index of the first entry that is not before `location`.
  WARPHEAP_NO_TSAN size_t find(u32 location) const {
    auto const* const all = entries.begin();
    size_t first = 0, last = entries.size();
    while (first < last) {
      size_t const middle = (first + last) / 2;
      if (all[middle].location < location) first = middle + 1;
      else last = middle;
    }
    return first;
  }

  void shrink() {
    raw_vector<u64> stamps;
    for (auto const& each : entries) stamps.push_back(each.stamp);
    auto* const last_dropped = stamps.end() - limit / 2;
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

  WARPHEAP_NO_TSAN bool covers(view const& other) const {
    return &other == this || (stores.covers(other.stores) && moments.covers(other.moments));
  }

  WARPHEAP_NO_TSAN void join(view const& other) {
    if (&other == this) return;
    stores.join(other.stores);
    moments.join(other.moments);
  }
};

/// Owns the views of a run; a view whose last holder lets go is used again.
class view_store {
 public:
  WARPHEAP_NO_TSAN view* make(u64 floor) {
    if (free_.empty()) free_.push_back(add());
    view* const made = free_.pop_back();
    made->stores.floor = made->moments.floor = floor;
    made->number = ++made_;
    made->holders = 1;
    made->stores.entries.clear();
    made->moments.entries.clear();
    return made;
  }

  WARPHEAP_NO_TSAN view* copy(view const& from) {
    view* const made = make(0);
    made->stores.copy(from.stores);
    made->moments.copy(from.moments);
    return made;
  }

  WARPHEAP_NO_TSAN static view* share(view* shared) {
    if (shared) ++shared->holders;
    return shared;
  }

  /// What either knows, null if both are; a share of one of them where that knows it all.
  WARPHEAP_NO_TSAN view* joined(view* left, view* right) {
    if (!left || !right) return share(left ? left : right);
    if (left->covers(*right)) return share(left);
    if (right->covers(*left)) return share(right);
    view* const both = copy(*left);
    both->join(*right);
    return both;
  }

  WARPHEAP_NO_TSAN void drop(view* dropped) {
    if (dropped && --dropped->holders == 0) free_.push_back(dropped);
  }

 private:
  [[gnu::noinline]] view* add() { return &all_.emplace_back(); }

  std::deque<view> all_;
  raw_vector<view*> free_;
  u64 made_ = 0;
};

}  // namespace warpheap::host::detail
