// SPDX-License-Identifier: Apache-2.0
// Lanes that can run, in a ring: first in first out for the round robin, any position for the
// random walk, and no allocation while lanes run.
#pragma once

#include "lane.hpp"

namespace warpheap::host::detail {

class lane_ring {
 public:
  lane_ring() = default;
  lane_ring(lane_ring const&) = delete;
  lane_ring& operator=(lane_ring const&) = delete;
  ~lane_ring() { delete[] items_; }

  WARPHEAP_NO_TSAN bool empty() const { return head_ == tail_; }
  WARPHEAP_NO_TSAN u64 size() const { return tail_ - head_; }
  WARPHEAP_NO_TSAN void push(lane* pushed) { items_[tail_++ & mask_] = pushed; }
  WARPHEAP_NO_TSAN lane* front() const { return items_[head_ & mask_]; }
  WARPHEAP_NO_TSAN lane* pop() { return items_[head_++ & mask_]; }

  WARPHEAP_NO_TSAN lane* at(u64 position) const { return items_[(head_ + position) & mask_]; }

  /// Takes the lane at `position`, [0, size()); the others keep their order.
  WARPHEAP_NO_TSAN lane* remove(u64 position) {
    lane* const taken = at(position);
    for (; position != 0; --position) items_[(head_ + position) & mask_] = at(position - 1);
    ++head_;
    return taken;
  }

  /// Takes the lane at `position`, [0, size()); the front takes its place.
  WARPHEAP_NO_TSAN lane* take(u64 position) {
    auto& place = items_[(head_ + position) & mask_];
    lane* const taken = place;
    place = items_[head_ & mask_];
    ++head_;
    return taken;
  }

  /// Puts `put` at `position` and returns the lane that was there.
  WARPHEAP_NO_TSAN lane* swap(u64 position, lane* put) {
    auto& place = items_[(head_ + position) & mask_];
    lane* const taken = place;
    place = put;
    return taken;
  }

  void clear() { head_ = tail_ = 0; }

  /// Puts a lane behind all that may run again before it.
  WARPHEAP_NO_TSAN void push_by_wake_step(lane* pushed) {
    u64 place = tail_++;
    for (; place != head_ && items_[(place - 1) & mask_]->wake_step > pushed->wake_step; --place)
      items_[place & mask_] = items_[(place - 1) & mask_];
    items_[place & mask_] = pushed;
  }

  /// Makes room for `lanes` lanes.
  WARPHEAP_NO_TSAN void reserve(u64 lanes) {
    if (items_ && lanes <= mask_ + 1) return;
    u64 capacity = 64;
    while (capacity < lanes) capacity *= 2;
    auto** const grown = new lane*[capacity];
    u64 const count = size();
    for (u64 i = 0; i < count; ++i) grown[i] = items_[(head_ + i) & mask_];
    delete[] items_;
    items_ = grown;
    mask_ = capacity - 1;
    head_ = 0;
    tail_ = count;
  }

 private:
  lane** items_ = nullptr;
  u64 mask_ = 0;
  u64 head_ = 0;
  u64 tail_ = 0;
};

/// A seeded generator (splitmix64: Steele, Lea, Flood 2014) whose every draw is a step of the
/// replay.
class draws {
 public:
  explicit draws(u64 seed) : state_{seed * 0x9e37'79b9'7f4a'7c15ull + 0xd1b5'4a32'd192'ed03ull} {}

  WARPHEAP_NO_TSAN u64 next() {
    u64 mixed = state_ += 0x9e37'79b9'7f4a'7c15ull;
    mixed = (mixed ^ mixed >> 30) * 0xbf58'476d'1ce4'e5b9ull;
    mixed = (mixed ^ mixed >> 27) * 0x94d0'49bb'1331'11ebull;
    return mixed ^ mixed >> 31;
  }

  /// A number in [0, bound), bound in [1, 2^32).
  WARPHEAP_NO_TSAN u64 below(u64 bound) { return (next() >> 32) * bound >> 32; }

 private:
  u64 state_;
};

}  // namespace warpheap::host::detail
