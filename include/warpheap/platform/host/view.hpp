// The stores that a lane must have seen: a vector clock over locations in place of lanes, kept
// small.
//
// V1  the holder knows every store up to step `floor`, and every store to `entries[i].location` up
//     to `entries[i].step`.
// V2  entries are sorted by location, each later than the floor, at most `limit` of them.
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
  u64 step;
};

class view {
 public:
  u64 floor = 0;
  u32 holders = 0;
  std::vector<seen_store> entries;

  /// The latest step up to which stores to `location` are known.
  u64 known(u32 location) const {
    auto const found = find(location);
    return found != entries.end() && found->location == location ? found->step : floor;
  }

  void raise(u32 location, u64 step) {
    if (step <= floor) return;
    auto const found = entries.begin() + (find(location) - entries.begin());
    if (found != entries.end() && found->location == location) {
      found->step = std::max(found->step, step);
    } else {
      entries.insert(found, {location, step});
      if (entries.size() > limit) shrink();
    }
  }

  /// From now on everything up to `step` is known.
  void raise_floor(u64 step) {
    if (step <= floor) return;
    floor = step;
    std::erase_if(entries, [step](seen_store const& each) { return each.step <= step; });
  }

  /// Both are sorted (V2), so one pass over both suffices: most steps of a run with stale reads
  /// join some view.
  void join(view const& other) {
    if (&other == this) return;
    raise_floor(other.floor);
    static thread_local std::vector<seen_store> both;
    both.clear();
    auto mine = entries.begin();
    for (auto const& each : other.entries) {
      if (each.step <= floor) continue;
      while (mine != entries.end() && mine->location < each.location) both.push_back(*mine++);
      both.push_back(each);
      if (mine != entries.end() && mine->location == each.location)
        both.back().step = std::max(both.back().step, mine++->step);
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
    std::vector<u64> steps;
    steps.reserve(entries.size());
    for (auto const& each : entries) steps.push_back(each.step);
    auto const last_dropped = steps.end() - limit / 2;
    std::nth_element(steps.begin(), last_dropped, steps.end());
    raise_floor(*last_dropped);
  }
};

/// Owns the views of a run; a view whose last holder lets go is used again.
class view_store {
 public:
  view* make(u64 floor) {
    if (free_.empty()) free_.push_back(&all_.emplace_back());
    view* const made = free_.back();
    free_.pop_back();
    made->floor = floor;
    made->holders = 1;
    made->entries.clear();
    return made;
  }

  view* copy(view const& from) {
    view* const made = make(from.floor);
    made->entries = from.entries;
    return made;
  }

  static view* share(view* shared) {
    if (shared) ++shared->holders;
    return shared;
  }

  void drop(view* dropped) {
    if (dropped && --dropped->holders == 0) free_.push_back(dropped);
  }

 private:
  std::deque<view> all_;
  std::vector<view*> free_;
};

}  // namespace warpheap::host::detail
