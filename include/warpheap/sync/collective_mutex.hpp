// SPDX-License-Identifier: Apache-2.0
// A mutex that a group of lanes holds together: they enter as one, share the work inside, and leave
// one by one.
//
// A mutex that one lane holds makes the lanes of a warp, or of a thread block, queue up for work
// that they could share. Here one lane of the group takes the word for all of them, and a barrier
// tells the others. The word counts the members still inside, so members need not return to a
// common place to leave: they may unlock from different branches, in any order, alone or several at
// once, and the last one opens the mutex.
//
//   word = 0   unlocked; zeroed memory is a field of unlocked mutexes
//   word = k   a group is inside, and k of its members have not unlocked yet
//
//   collective.G1  the word leaves 0 only by one compare-and-swap to the size of a whole group: one
//       group at a time.
//   collective.G2  every member subtracts itself exactly once, so the word is 0 when, and not
//       before, the last one has left.
//   collective.G3  what any member did inside happens before what any member of the next group does
//       inside.
//
// Lanes that diverged form groups of those that are here (`simt::active_mask()`, split by mutex:
// lock_converged); a group never waits for a lane that is not in it. A lane that holds the mutex
// enters no collective with a lane that may be waiting for it: a thread block that locks as a whole
// must not have a member inside already.
//
// Progress: lock waits for the members inside, which run; not fair. unlock is wait-free.
// Cost: one compare-and-swap and one barrier a group; one subtraction by each set of lanes that
// leaves together.
// Source: Gelado and Garland 2019, section 4.2.2. Differs: leaving needs no barrier (their general
// release has one: see collective_release()), because the word counts members.
#pragma once

#include "../platform/assert.hpp"
#include "../platform/backoff.hpp"
#include "../platform/simt.hpp"
#include "warp_aggregate.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

class collective_mutex {
 public:
  WARPHEAP_DEVICE explicit collective_mutex(u32& word) : word_{word}, name_{reinterpret_cast<u64>(&word)} {}

  /// Waits until the mutex belongs to the lanes of `mask`. All of them call, with the same mutex,
  /// and are inside together when it returns; each of them unlocks once.
  WARPHEAP_DEVICE void lock(lane_mask mask) const {
    auto const group = group_of(mask);
    if (group.leads) admit(group.size);
    // Orders memory: the leader's acquire is every member's (collective.G3).
    simt::sync_warp(mask);
  }

  /// Locks with the lanes of the warp that are here with us for the same mutex. Returns our place
  /// among them, by which to share out the work.
  WARPHEAP_DEVICE lane_group lock_converged() const {
    auto const group = group_by(simt::active_mask(), name_);
    lock(group.mask);
    return group;
  }

  /// Waits until the mutex belongs to the thread block. All of its threads call, and are inside
  /// together when it returns; each of them unlocks once.
  WARPHEAP_DEVICE void lock_block() const {
    if (simt::thread_index() == 0) admit(simt::block_dim());
    // Orders memory, as in lock().
    simt::sync_block();
  }

  /// The calling member leaves. Any lane alone; the mutex opens with the last.
  WARPHEAP_DEVICE void unlock() const { leave(1); }

  /// The lanes of `mask` leave together, by one subtraction: all members of the group that locked,
  /// or some. All of them call.
  WARPHEAP_DEVICE void unlock(lane_mask mask) const {
    // Orders memory: the leader's release covers every member's work (collective.G3).
    simt::sync_warp(mask);
    auto const group = group_of(mask);
    if (group.leads) leave(group.size);
  }

  /// The whole thread block leaves together; all of its threads call.
  WARPHEAP_DEVICE void unlock_block() const {
    // Orders memory, as in unlock().
    simt::sync_block();
    if (simt::thread_index() == 0) leave(simt::block_dim());
  }

  /// Members inside: a hint, unless the caller is one of them; then at least 1.
  WARPHEAP_DEVICE u32 members() const { return word_.load(order::relaxed); }

 private:
  WARPHEAP_DEVICE void admit(u32 size) const {
    for (backoff nap;; nap.while_working()) {
      u32 seen = members();  // waiters only load
      // collective.G1. acquire: what every member of the last group did inside; pairs with the
      // releases in leave(), which form one chain of read-modify-writes.
      if (seen == 0 && word_.compare_exchange(seen, size, order::acquire, order::relaxed)) return;
    }
  }

  WARPHEAP_DEVICE void leave(u32 leaving) const {
    // collective.G2. release: what we did inside; pairs with the acquire in admit().
    u32 const inside = word_.fetch_sub(leaving, order::release);
    WARPHEAP_ASSERT(inside >= leaving, "collective_mutex: more members leave than entered");
    static_cast<void>(inside);
  }

  atomic_ref<u32> word_;
  u64 name_;
};

/// One lane of `mask` calls `acquire()`, whatever it acquires; the others wait for it. All lanes of
/// `mask` call, hold the result (an integer or a pointer), and see what the acquiring lane saw.
template <class Acquire>
WARPHEAP_DEVICE auto collective_acquire(lane_mask mask, Acquire acquire) {
  auto const group = group_of(mask);
  decltype(acquire()) got{};
  if (group.leads) got = acquire();
  // Orders memory; the shuffle does not.
  simt::sync_warp(mask);
  return broadcast(group, got);
}

/// One lane of `mask` calls `release()` when all of them have come here. All lanes of `mask` call;
/// what they did before happens before what it releases.
template <class Release>
WARPHEAP_DEVICE void collective_release(lane_mask mask, Release release) {
  simt::sync_warp(mask);
  if (group_of(mask).leads) release();
}

/// Any lock, held by a group: the paper's general form. All members release together, at a barrier.
template <class Lock>
class collective {
 public:
  WARPHEAP_DEVICE explicit collective(Lock const& lock) : lock_{lock} {}

  /// All lanes of `mask` call, with the same lock.
  WARPHEAP_DEVICE void lock(lane_mask mask) const {
    if (group_of(mask).leads) lock_.lock();
    simt::sync_warp(mask);
  }
  WARPHEAP_DEVICE void unlock(lane_mask mask) const {
    simt::sync_warp(mask);
    if (group_of(mask).leads) lock_.unlock();
  }

  /// All threads of the thread block call, with the same lock.
  WARPHEAP_DEVICE void lock_block() const {
    if (simt::thread_index() == 0) lock_.lock();
    simt::sync_block();
  }
  WARPHEAP_DEVICE void unlock_block() const {
    simt::sync_block();
    if (simt::thread_index() == 0) lock_.unlock();
  }

 private:
  Lock lock_;
};

}}  // namespace warpheap::WARPHEAP_BACKEND
