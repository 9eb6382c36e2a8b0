// SPDX-License-Identifier: Apache-2.0
// States that a search has seen, each with the fewest preemptions that led to it.
#pragma once

#include <algorithm>
#include <memory_resource>
#include <vector>

#include "../platform/types.hpp"

namespace warpheap::explore {

/// A set of 64-bit hashes, of which the lowest 4 bits give way to a count in [0, 15]. Two states
/// whose other bits agree count as one: among 10 million states that happens with a probability of
/// one in 20,000.
class state_set {
 public:
  /// In at most this many entries, two for each state.
  explicit state_set(std::pmr::memory_resource* memory, size_t most) : entries_(least, memory), most_{most} {}

  /// Whether `state` was seen before with at most `count`. If not, it is from now on, if there is
  /// room.
  bool seen(u64 state, u32 count) {
    if (2 * (used_ + 1) > entries_.size()) grow();
    u64 const key = state & ~low ? state & ~low : u64{16};
    u64& entry = place_of(key);
    if (entry != 0 && (entry & low) <= count) return true;
    if (entry == 0 && 2 * (used_ + 1) > entries_.size()) return false;
    used_ += entry == 0;
    entry = key | count;
    return false;
  }

  u64 size() const { return used_; }

  void clear() {
    std::ranges::fill(entries_, 0);
    used_ = 0;
  }

 private:
  static constexpr u64 low = 15;
  static constexpr size_t least = 1024;

  u64& place_of(u64 key) {
    u64 const mask = entries_.size() - 1;
    u64 place = key >> 4 & mask;
    while (entries_[place] != 0 && (entries_[place] & ~low) != key) place = (place + 1) & mask;
    return entries_[place];
  }

  void grow() {
    if (entries_.size() >= most_) return;
    std::pmr::vector<u64> old(2 * entries_.size(), entries_.get_allocator());
    old.swap(entries_);
    for (u64 const entry : old)
      if (entry != 0) place_of(entry & ~low) = entry;
  }

  std::pmr::vector<u64> entries_;
  size_t most_;
  u64 used_ = 0;
};

}  // namespace warpheap::explore
