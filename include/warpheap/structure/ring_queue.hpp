// SPDX-License-Identifier: Apache-2.0
// A queue of up to 2^30 distinct items, given out and taken back by any number of lanes without a
// lock: slots in a ring behind a push and a pop index. The items of a warp's lanes move together:
// one operation on each index, a slot a lane.
//
//   index words, 128 bytes apart
//   | available | pushes | pops |
//
//   slots: 2^k of them, at least as many as there are items; item + 1, or 0 if empty
//   | 0 | 0 | 7+1 | 3+1 | 5+1 | 0 | ...
//             ^ pops            ^ pushes, both modulo 2^k
//
// Two stages. `available` counts the items promised to no lane. A lane that wants n items first
// subtracts n there, at most as many as it saw, and adds back those that turn out not to be there.
// Only a lane that was promised an item draws a ticket. Ticket t belongs to slot t modulo 2^k: the
// lane exchanges the slot with 0 until it gets an item.
//
//   ring_queue.Q1  available = items that are pushed and not promised, less what lanes subtracted
//       in vain and have not added back yet.
//   ring_queue.Q2  pops <= pushes, as counted: a pop ticket is drawn after a promise, and only an
//       item whose push has begun is promised.
//   ring_queue.Q3  pushes - pops <= items: an item is pushed only by the lane that popped it.
//   ring_queue.Q4  a slot changes 0 -> item + 1 by a push that has a ticket for it, item + 1 -> 0
//       by a pop that has one. Two pushes, or two pops, of different rounds may meet in a slot;
//       either may come first. By ring_queue.Q3 they find room.
//   ring_queue.Q5  at rest, the slots of tickets [pops, pushes) hold items, each item once, and all
//       others hold 0.
//
// `none` is certain: it is returned only when available was seen at 0 or less. By ring_queue.Q1
// there were then no more items than other calls in progress had subtracted in vain. The call that
// adds the last of these back sees what is left, and takes it. Since no lane subtracts more than it
// saw,
// lanes at an empty queue only read, and hide nothing.
// Progress: a pop waits for a push that holds a ticket (ring_queue.Q2), a push for a pop that does
// (ring_queue.Q3, ring_queue.Q4). The call waited for holds no larger a ticket of the same slot, so
// waits form no circle, and no lane waits for one that has not started. Source: the HeapBuffer of
// PIConGPU as Eckert 2014, section 2.4.4, describes it. Differs: see docs/design/ring_queue.md.
#pragma once

#include "../platform/backoff.hpp"
#include "../sync/warp_aggregate.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// View of a queue in `words_for(items)` words, which it does not own; 16 bytes, trivially
/// copyable.
class ring_queue {
 public:
  static constexpr u32 none = ~0u;
  static constexpr u32 max_items = 1u << 30;

  /// Words that a queue for `items` items takes; `items` is in [1, max_items].
  WARPHEAP_HOST_DEVICE static constexpr u64 words_for(u32 items) { return index_words + (u64{1} << log2_ceil(items)); }

  ring_queue() = default;
  WARPHEAP_HOST_DEVICE ring_queue(u32* words, u32 items) : words_{words}, items_{items} {}

  WARPHEAP_HOST_DEVICE u32 items() const { return items_; }
  WARPHEAP_HOST_DEVICE u32 slot_count() const { return 1u << log2_ceil(items_); }
  WARPHEAP_HOST_DEVICE u32* words() const { return words_; }

  /// Items promised to no lane; exact when the queue is quiet.
  WARPHEAP_DEVICE u32 available() const {
    // relaxed: a figure, out of date when it is read.
    i32 const seen = static_cast<i32>(available_ref().load(order::relaxed));
    return seen > 0 ? static_cast<u32>(seen) : 0;
  }

  /// Pops an item for each lane of the group, as long as there are any; `none` for the others.
  ///
  /// group   lanes that call; all of them do
  /// returns to each lane its own item; what the lane that pushed it did before happens before the
  /// return
  WARPHEAP_DEVICE u32 pop(lane_group const& group) const {
    // Orders memory: the leader looks for all lanes, and sees at least what any of them knows.
    simt::sync_warp(group.mask);
    u32 granted = 0, first = 0;
    if (group.leads) {
      granted = reserve(available_ref(), group.size);
      // relaxed: tickets are distinct, and the slot orders memory.
      if (granted != 0) first = pops_ref().fetch_add(granted, order::relaxed);
    }
    granted = broadcast(group, granted);
    first = broadcast(group, first);
    return group.rank < granted ? take(first + group.rank) : none;
  }

  /// Gives back the item of each lane of the group, which that lane owned. All lanes of the group
  /// call.
  WARPHEAP_DEVICE void push(lane_group const& group, u32 item) const {
    u32 first = 0;
    if (group.leads) {
      // relaxed: tickets are distinct, and the slots order memory. A lane that is promised our
      // items before they lie in their slots waits there for us, and we run (ring_queue.Q2).
      first = pushes_ref().fetch_add(group.size, order::relaxed);
      available_ref().fetch_add(group.size, order::relaxed);
    }
    first = broadcast(group, first);
    // A lane that asks next sees what its leader added here.
    simt::sync_warp(group.mask);
    put(first + group.rank, item);
  }

  /// Pushes the items `first` + i for the bits i of `which`, which the group owned. All lanes of
  /// the group call, with the same arguments.
  WARPHEAP_DEVICE void push_all(lane_group const& group, u32 first, u32 which) const {
    u32 const count = popcount(which);
    if (count == 0) return;
    u32 ticket = 0;
    if (group.leads) {
      // relaxed: as in push().
      ticket = pushes_ref().fetch_add(count, order::relaxed);
      available_ref().fetch_add(count, order::relaxed);
    }
    ticket = broadcast(group, ticket);
    // As in push(); and what each lane did to the items happens before the puts of all lanes.
    simt::sync_warp(group.mask);
    WARPHEAP_NO_UNROLL
    for (u32 i = group.rank; i < count; i += group.size) put(ticket + i, first + nth_bit(which, i));
  }

  /// Writes the words of a quiet queue of all items in ascending order, its indices at `start`;
  /// lane `lane` of `lanes`.
  WARPHEAP_DEVICE void fill(u32 start, u64 lane, u64 lanes) const {
    for (u64 word = lane; word < words_for(items_); word += lanes)
      // relaxed: the launch orders it
      atomic_ref<u32>{words_[word]}.store(initial(word, start), order::relaxed);
  }

  /// Word `word` of such a queue.
  WARPHEAP_HOST_DEVICE u32 initial(u64 word, u32 start) const {
    if (word == available_word) return items_;
    if (word == pushes_word) return start + items_;
    if (word == pops_word) return start;
    if (word < index_words) return 0;
    u32 const item = (static_cast<u32>(word - index_words) - start) & (slot_count() - 1);
    return item < items_ ? item + 1 : 0;
  }

  // Where the indices and slots lie, for host code that looks at a quiet queue.
  static constexpr u32 available_word = 0;
  static constexpr u32 pushes_word = 32;
  static constexpr u32 pops_word = 64;
  static constexpr u32 index_words = 96;

  /// Takes up to `wanted` from a count of what is there; fewer only if there were no more. Any lane
  /// alone; lock-free: a lane that loops again saw what another lane took meanwhile.
  WARPHEAP_DEVICE static u32 reserve(atomic_ref<u32> count, u32 wanted) {
    u32 granted = 0;
    while (granted < wanted) {
      // relaxed: counts say nothing about other memory; the slots do.
      i32 const seen = static_cast<i32>(count.load(order::relaxed));
      if (seen <= 0) break;
      u32 const missing = wanted - granted;
      u32 const asked = static_cast<u32>(seen) < missing ? static_cast<u32>(seen) : missing;
      i32 const before = static_cast<i32>(count.fetch_sub(asked, order::relaxed));
      u32 got = static_cast<u32>(before) < asked ? static_cast<u32>(before) : asked;
      if (before <= 0) got = 0;
      if (got < asked) count.fetch_add(asked - got, order::relaxed);
      granted += got;
    }
    return granted;
  }

 private:
  WARPHEAP_DEVICE atomic_ref<u32> available_ref() const { return atomic_ref<u32>{words_[available_word]}; }
  WARPHEAP_DEVICE atomic_ref<u32> pushes_ref() const { return atomic_ref<u32>{words_[pushes_word]}; }
  WARPHEAP_DEVICE atomic_ref<u32> pops_ref() const { return atomic_ref<u32>{words_[pops_word]}; }
  WARPHEAP_DEVICE atomic_ref<u32> slot(u32 ticket) const {
    return atomic_ref<u32>{words_[index_words + (ticket & (slot_count() - 1))]};
  }

  /// The item that comes to this ticket's slot. Waits only for a push that holds a ticket
  /// (ring_queue.Q2).
  WARPHEAP_DEVICE u32 take(u32 ticket) const {
    backoff wait;
    for (;;) {
      // acquire: what the item's last owner did happens before us; pairs with the release in put().
      u32 const held = slot(ticket).exchange(0, order::acquire);
      if (held != 0) return held - 1;
      // relaxed: a look, so that waiting lanes do not write; the exchange decides.
      while (slot(ticket).load(order::relaxed) == 0) wait.while_working();
    }
  }

  /// Lays the item into this ticket's slot. Waits only for a pop that holds a ticket
  /// (ring_queue.Q4).
  WARPHEAP_DEVICE void put(u32 ticket, u32 item) const {
    backoff wait;
    for (;;) {
      u32 empty = 0;
      // release: what we did to the item happens before its next owner; pairs with the acquire in
      // take(). relaxed if the slot is not empty yet: we look again.
      if (slot(ticket).compare_exchange(empty, item + 1, order::release, order::relaxed)) return;
      wait.while_working();
    }
  }

  u32* words_ = nullptr;
  u32 items_ = 0;
};

}}  // namespace warpheap::WARPHEAP_BACKEND
