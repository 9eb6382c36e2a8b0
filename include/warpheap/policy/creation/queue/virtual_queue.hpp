// SPDX-License-Identifier: Apache-2.0
// A queue whose slots lie in chunks of the pool: a chunk is taken when a push needs one, and given
// back when its last slot was popped. So short queues take no memory, and a long one lies in memory
// that is free anyway.
//
//   counters, 128 bytes apart
//   | available | room | pushes | pops | installed | lock |
//
//   directory: for each segment of slots the chunk that has it, and how many slots are left to pop
//   | 5: chunk 17, 2048 | 6: chunk 3, 120 | 3: none | ...     segment s at s modulo its length
//
// As in a ring_queue, a pop subtracts from `available` what it may have before it draws tickets of
// `pops`. A push subtracts from `room` before it draws tickets of `pushes`, so every ticket has a
// slot. Ticket t is slot t modulo `entries` of segment t / entries. A slot is filled once and
// popped once while a chunk has it.
//
//   queue.V1  room = installed * entries - pushes, less what lanes were granted and have not drawn
//       yet.
//   queue.V2  pops <= pushes <= installed * entries. A pop's ticket was drawn by a push, and the
//       segment of a push's ticket is installed.
//   queue.V3  the thread that pops the last slot of a segment gives its chunk back.
//
// A push that finds no room and no free chunk is refused: nothing waits for memory. Nor does a
// queue keep memory that a request needs. drain() pops what the oldest segment has, and pushes
// void items into what room there is, which the next drain() pops.
// Progress: a pop waits for a push that holds its ticket; a push for a thread that installs a
// segment; that thread for the last pops of a segment a whole directory older.
// Source: Winter et al. 2020, the virtualised array queue. Differs: a push may be refused; void
// items.
#pragma once

#include "../../../platform/backoff.hpp"
#include "../../../structure/ring_queue.hpp"
#include "../../../sync/spin_mutex.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace queue_parts {

/// A ring_queue, or a virtual_queue with its storage.
template <bool IsVirtual, class Storage>
struct queue_for;

/// View of a queue in words_for(items) words, which it does not own; zeroed words are the empty
/// queue. `Storage` has acquire(), which returns a chunk or `none`; may_acquire(), a hint whether
/// there is one; release(storage, chunk); and slots_of(chunk), the chunk's `entries` slots.
template <class Storage>
class virtual_queue {
 public:
  static constexpr u32 none = ring_queue::none;
  static constexpr u32 entries = Storage::entries;

  WARPHEAP_HOST_DEVICE static constexpr u32 segments_for(u32 items) { return 1u << log2_ceil(items / entries + 4); }
  WARPHEAP_HOST_DEVICE static constexpr u64 words_for(u32 items) {
    return index_words + u64{entry_words} * segments_for(items);
  }

  WARPHEAP_HOST_DEVICE virtual_queue(u32* words, u32 items, Storage storage)
      : words_{words}, items_{items}, storage_{storage} {}

  WARPHEAP_HOST_DEVICE u32 items() const { return items_; }
  WARPHEAP_HOST_DEVICE u32* words() const { return words_; }
  /// What a drain pushes where no item is wanted.
  WARPHEAP_HOST_DEVICE u32 void_item() const { return items_; }

  /// An item, which may be void, for each lane of the group, as long as there are any; `none` for
  /// the others. All lanes of the group call.
  WARPHEAP_DEVICE u32 pop(lane_group const& group) const {
    // Orders memory: the leader looks for all lanes, and sees at least what any of them knows.
    simt::sync_warp(group.mask);
    u32 granted = 0, first = 0;
    if (group.leads) {
      granted = ring_queue::reserve(at(available_word), group.size);
      // relaxed: tickets are distinct, and the slots order memory.
      if (granted != 0) first = at(pops_word).fetch_add(granted, order::relaxed);
    }
    granted = broadcast(group, granted);
    first = broadcast(group, first);
    return group.rank < granted ? take(first + group.rank) : none;
  }

  /// Pushes the item of each lane of the group; false to those whose item was refused, which are
  /// the last. All lanes of the group call.
  WARPHEAP_DEVICE bool push(lane_group const& group, u32 item) const {
    grant const got = draw(group, group.size);
    bool const mine = group.rank < got.count;
    if (mine) put(got.first + group.rank, item);
    return mine;
  }

  /// Pushes the items `first` + i for the bits i of `which`; returns those pushed, which are the
  /// lowest. All lanes of the group call, with the same arguments.
  WARPHEAP_DEVICE u32 push_all(lane_group const& group, u32 first, u32 which) const {
    if (which == 0) return 0;
    grant const got = draw(group, popcount(which));
    WARPHEAP_NO_UNROLL
    for (u32 i = group.rank; i < got.count; i += group.size) put(got.first + i, first + nth_bit(which, i));
    return got.count != 0 ? static_cast<u32>(lowest_bits(which, got.count)) : 0;
  }

  /// Pops up to a segment's items and gives each to drop(item); or, if there are none, fills the
  /// room that is left with void items. All lanes of the group call.
  template <class Drop>
  WARPHEAP_DEVICE void drain(lane_group const& group, Drop drop) const {
    simt::sync_warp(group.mask);
    u32 popped = 0, pushed = 0, first = 0;
    if (group.leads) {
      popped = ring_queue::reserve(at(available_word), entries);
      if (popped == 0) pushed = ring_queue::reserve(at(room_word), 2 * entries);
      // relaxed: as in pop() and draw().
      if (popped != 0) first = at(pops_word).fetch_add(popped, order::relaxed);
      if (pushed != 0) first = at(pushes_word).fetch_add(pushed, order::relaxed);
      if (pushed != 0) at(available_word).fetch_add(pushed, order::relaxed);
    }
    popped = broadcast(group, popped);
    pushed = broadcast(group, pushed);
    first = broadcast(group, first);
    WARPHEAP_NO_UNROLL
    for (u32 i = group.rank; i < pushed; i += group.size) put(first + i, void_item());
    WARPHEAP_NO_UNROLL
    for (u32 i = group.rank; i < popped; i += group.size) drop(take(first + i));
    simt::sync_warp(group.mask);
  }

  // Where the counters and the directory lie, for host code that looks at a quiet queue.
  static constexpr u32 available_word = 0, room_word = 32, pushes_word = 64, pops_word = 96, installed_word = 128;
  static constexpr u32 lock_word = 160, index_words = 192;
  /// An entry of the directory: the segment's number + 1, its chunk + 1 or 0, slots left to pop.
  /// Numbers of segments wrap with the tickets.
  static constexpr u32 entry_words = 4, chunk_word = 1, left_word = 2;

 private:
  struct grant {
    u32 count, first;
  };

  WARPHEAP_DEVICE atomic_ref<u32> at(u32 word) const { return atomic_ref<u32>{words_[word]}; }
  WARPHEAP_DEVICE atomic_ref<u32> entry(u32 segment, u32 word) const {
    return at(index_words + entry_words * (segment & (segments_for(items_) - 1)) + word);
  }

  /// Tickets for up to `wanted` pushes of the group.
  WARPHEAP_DEVICE grant draw(lane_group const& group, u32 wanted) const {
    grant got{};
    if (group.leads) got.count = ring_queue::reserve(at(room_word), wanted);
    WARPHEAP_NO_UNROLL
    while (broadcast(group, got.count) < wanted && install(*this, group))
      if (group.leads) got.count += ring_queue::reserve(at(room_word), wanted - got.count);
    // relaxed: as in ring_queue::push(); a lane that is promised our items waits at their slots.
    if (group.leads && got.count != 0) {
      got.first = at(pushes_word).fetch_add(got.count, order::relaxed);
      at(available_word).fetch_add(got.count, order::relaxed);
    }
    got.count = broadcast(group, got.count);
    got.first = broadcast(group, got.first);
    // A lane that calls next sees what its leader added here; and what each lane did to the items
    // happens before the puts of all lanes.
    simt::sync_warp(group.mask);
    return got;
  }

  /// Makes room, or sees that there is some; false if no chunk is free. All lanes of the group
  /// call.
  WARPHEAP_COLD static bool install(virtual_queue self, lane_group group) {
    u32 chunk = none;
    bool const leader_has_room = group.leads && self.has_room_or_takes(chunk);
    chunk = broadcast(group, chunk);
    bool const has_room = simt::ballot(group.mask, leader_has_room) != 0;
    if (chunk == none) return has_room;
    // The chunk is ours alone until it is published.
    u32* const first = self.storage_.slots_of(chunk);
    WARPHEAP_NO_UNROLL
    for (u32 i = group.rank; i < entries; i += group.size) first[i] = 0;
    simt::sync_warp(group.mask);
    if (group.leads) {
      self.add_segment(chunk);
      self.lock().unlock();
    }
    return true;
  }

  WARPHEAP_DEVICE spin_mutex lock() const { return spin_mutex{words_[lock_word]}; }

  /// Whether there is room, or we hold the lock and a `chunk` to make it of. Any lane alone. A
  /// lane that finds the lock held waits for room, which its holder makes.
  WARPHEAP_DEVICE bool has_room_or_takes(u32& chunk) const {
    // relaxed: reserve() looks again.
    auto const has_room = [this] { return static_cast<i32>(at(room_word).load(order::relaxed)) > 0; };
    backoff wait;
    for (;; wait.while_working()) {
      if (has_room()) return true;
      if (!storage_.may_acquire()) return false;
      if (!lock().is_locked() && lock().try_lock()) break;
    }
    if (!has_room()) chunk = storage_.acquire();
    if (chunk != none) return true;
    lock().unlock();
    return has_room();
  }

  /// Publishes a chunk whose slots are empty. By the holder of the lock.
  WARPHEAP_DEVICE void add_segment(u32 chunk) const {
    // relaxed: installed changes under the lock.
    u32 const segment = at(installed_word).fetch_add(1, order::relaxed) & (~0u / entries);
    backoff wait;
    // acquire: pairs with the release in take(): the entry's last segment is gone.
    while (entry(segment, chunk_word).load(order::acquire) != 0) wait.while_working();
    entry(segment, left_word).store(entries, order::relaxed);
    entry(segment, chunk_word).store(chunk + 1, order::relaxed);
    // release: the entry and the empty slots; pairs with the acquire in slots_of().
    entry(segment, 0).store(segment + 1, order::release);
    at(room_word).fetch_add(entries, order::relaxed);
  }

  /// The slots of a segment that is installed, or that a thread is about to install (queue.V2), and
  /// which has a slot that we are to fill or to pop.
  WARPHEAP_DEVICE u32* slots_of(u32 segment) const {
    backoff wait;
    // acquire: pairs with the release in add_segment().
    while (entry(segment, 0).load(order::acquire) != segment + 1) wait.while_working();
    return storage_.slots_of(entry(segment, chunk_word).load(order::relaxed) - 1);
  }

  WARPHEAP_DEVICE void put(u32 ticket, u32 item) const {
    // release: what we did to the item happens before its next owner; pairs with the acquire in
    // take(). A slot is filled once, so nothing has to be looked at.
    atomic_ref<u32>{slots_of(ticket / entries)[ticket % entries]}.store(item + 1, order::release);
  }

  /// The item of a ticket. Waits only for a push that holds it (queue.V2).
  WARPHEAP_DEVICE u32 take(u32 ticket) const {
    u32 const segment = ticket / entries;
    atomic_ref<u32> const slot{slots_of(segment)[ticket % entries]};
    backoff wait;
    u32 held = 0;
    // acquire: pairs with the release in put().
    while ((held = slot.load(order::acquire)) == 0) wait.while_working();
    // acq_rel: all looks at the segment's slots happen before the chunk is given back (queue.V3);
    // each pop is the others' partner.
    if (entry(segment, left_word).fetch_sub(1, order::acq_rel) == 1) {
      u32 const chunk = entry(segment, chunk_word).load(order::relaxed) - 1;
      // release: pairs with the acquire in add_segment().
      entry(segment, chunk_word).store(0, order::release);
      Storage::release(storage_, chunk);
    }
    return held - 1;
  }

  u32* words_;
  u32 items_;
  Storage storage_;
};

template <class Storage>
struct queue_for<false, Storage> {
  using type = ring_queue;
};
template <class Storage>
struct queue_for<true, Storage> {
  using type = virtual_queue<Storage>;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::queue_parts
