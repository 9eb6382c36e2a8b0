// SPDX-License-Identifier: Apache-2.0
// What a lane knows of the stores, and what its next operations hand on.
//
// PTX lets a release or an acquire consist of several operations. A release pattern on a location
// is a release there or a fence, and any later store of the lane there. An acquire pattern is any
// read, and then an acquire there or a fence. So a lane keeps what it released where, and what its
// relaxed reads would teach it.
//
// host.K1  what a lane releases grows: a later entry of `released` covers the earlier ones and
//     `fenced`.
// Both lists are short. An old release that finds no place is handed on by every later store, and
// an old read is acquired by the next acquire anywhere. A lane then synchronizes more than it must,
// which hides faults but never invents one.
#pragma once

#include "view.hpp"

namespace warpheap::host::detail {

/// At most eight pairs of a location and a view, oldest first; holds the views.
class views_by_location {
 public:
  static constexpr u32 limit = 8;

  struct entry {
    u32 location = 0;
    view* learned = nullptr;
  };

  WARPHEAP_NO_TSAN bool is_full() const { return count_ == limit; }

  WARPHEAP_NO_TSAN entry* find(u32 location) {
    for (u32 i = count_; i-- > 0;) {
      if (entries_[i].location == location) return entries_ + i;
    }
    return nullptr;
  }

  WARPHEAP_NO_TSAN void add(entry const& made) { entries_[count_++] = made; }

  /// Removes an entry, and returns its view to the caller, which now holds it.
  WARPHEAP_NO_TSAN view* take(entry* taken) {
    view* const learned = taken->learned;
    --count_;
    for (; taken != entries_ + count_; ++taken) *taken = taken[1];
    return learned;
  }
  WARPHEAP_NO_TSAN view* take_oldest() { return count_ ? take(entries_) : nullptr; }

 private:
  u32 count_ = 0;
  entry entries_[limit];
};

struct knowledge {
  view* known = nullptr;        // the stores that the lane must have seen
  view* fenced = nullptr;       // what it knew at its last fence: every later store carries it
  views_by_location released;   // since that fence: a later store there carries it
  views_by_location read;       // by relaxed reads: a later acquire there, or a fence, learns it
  u64 noted_view = 0;           // number of the last of those views
  u32 noted_at = 0;             // where it was read
  view* read_before = nullptr;  // by relaxed reads of long ago: any acquire learns it
  u64 marked = 0;               // stamp of a moment that no other lane can know yet; 0: none

  WARPHEAP_NO_TSAN void clear(view_store& views) {
    views.drop(known);
    views.drop(read_before);
    forget_releases(views);
    while (view* const learned = read.take_oldest()) views.drop(learned);
    known = read_before = nullptr;
    noted_view = marked = 0;
  }

  /// The lane's view for a change: a copy of its own.
  WARPHEAP_NO_TSAN view& own(view_store& views) {
    if (known->holders > 1) {
      view* const shared = known;
      known = views.copy(*shared);
      views.drop(shared);
    }
    return *known;
  }

  /// A share of what the lane knows, for others.
  WARPHEAP_NO_TSAN view* hand_on() {
    marked = 0;
    return view_store::share(known);
  }

  WARPHEAP_NO_TSAN void learn(view_store& views, view const& more) {
    if (!known->covers(more)) own(views).join(more);
  }

  /// A release at `location` has handed on all that the lane knows.
  WARPHEAP_NO_TSAN void note_release(view_store& views, u32 location) {
    if (auto* const earlier = released.find(location)) views.drop(released.take(earlier));
    if (released.is_full()) {  // host.K1: it covers what `fenced` has
      views.drop(fenced);
      fenced = released.take_oldest();
    }
    released.add({location, hand_on()});
  }

  /// What a relaxed store at `location` carries, null if nothing.
  WARPHEAP_NO_TSAN view* carried_at(u32 location) {
    auto* const earlier = released.find(location);
    return earlier ? earlier->learned : fenced;
  }

  /// A relaxed read at `location` saw a message that carries `learned`.
  WARPHEAP_NO_TSAN void note_read(view_store& views, u32 location, view* learned) {
    if (learned->number == noted_view && location == noted_at) return;  // lanes often read again
    noted_view = learned->number;
    noted_at = location;
    auto* const earlier = read.find(location);
    if ((earlier && earlier->learned == learned) || known->covers(*learned)) return;
    view* const both = views.joined(earlier ? earlier->learned : nullptr, learned);
    if (earlier) views.drop(read.take(earlier));
    if (read.is_full()) {
      view* const oldest = read.take_oldest();
      view* const merged = views.joined(read_before, oldest);
      views.drop(oldest);
      views.drop(read_before);
      read_before = merged;
    }
    read.add({location, both});
  }

  /// An acquire at `location`: learns what the lane's reads there have seen.
  WARPHEAP_NO_TSAN void acquire_reads(view_store& views, u32 location) {
    if (auto* const seen = read.find(location)) absorb(views, read.take(seen));
    if (read_before) absorb(views, read_before);
    read_before = nullptr;
  }

  /// A fence: learns what the lane's reads have seen.
  WARPHEAP_NO_TSAN void acquire_all_reads(view_store& views) {
    while (view* const seen = read.take_oldest()) absorb(views, seen);
    if (read_before) absorb(views, read_before);
    read_before = nullptr;
  }

  /// A fence: every later store hands on what the lane knows now.
  WARPHEAP_NO_TSAN void release_all(view_store& views) {
    forget_releases(views);
    fenced = hand_on();
  }

 private:
  WARPHEAP_NO_TSAN void forget_releases(view_store& views) {
    views.drop(fenced);
    fenced = nullptr;
    while (view* const handed_on = released.take_oldest()) views.drop(handed_on);
  }

  WARPHEAP_NO_TSAN void absorb(view_store& views, view* seen) {
    learn(views, *seen);
    views.drop(seen);
  }
};

}  // namespace warpheap::host::detail
