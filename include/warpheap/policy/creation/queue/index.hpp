// SPDX-License-Identifier: Apache-2.0
// The index queue of a class: where free pages are to be found, first come first served. Its items
// are numbers of pages, or of chunks; a bit an item says whether it is queued.
//
// An item is a hint. The words of chunks say what is free, and a thread that pops an item takes the
// page there if it still can. So an item may be out of date: its page was taken by a search, or its
// chunk went to another class and came back.
//
//   queue.H1  an item is queued at most once: only the thread that set its bit pushes it, and only
//       the
//       thread that popped it clears the bit. So a ring with a slot an item never overflows.
//   queue.H2  a page that comes free is queued, or the thread that clears the item's bit has yet to
//       look at the page. The free clears the taken bit and then sets the item's; the pop clears
//       the item's and then looks. Both operations on the item's bit acquire and release, so that
//       the later one sees what came before the earlier one. A virtual queue may refuse the item,
//       and drops items when its memory is needed: then a search finds the page.
//
// Source: Winter et al. 2020. Differs: there an item is the page itself.
#pragma once

#include "virtual_queue.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace queue_parts {

/// View of a queue and its bits, which it does not own.
template <class Queue>
struct class_index {
  Queue queue;
  u32* queued;

  static constexpr u32 none = ring_queue::none;
  static constexpr bool is_virtual = requires(Queue q) { q.void_item(); };

  /// What a pop brought.
  struct popped {
    bool any = false;  ///< the queue had something
    u32 item = none;   ///< none also if that was void
  };

  /// An item for each lane of the group, as long as there are any. All lanes of the group call.
  WARPHEAP_DEVICE popped pop(lane_group const& group) const {
    u32 const item = queue.pop(group);
    return {item != none, item < queue.items() ? clear(item) : none};
  }

  /// Queues the item of each lane of the group that `wishes` to, unless it is queued. What made the
  /// page free happens before the call. All lanes of the group call.
  WARPHEAP_DEVICE void push(lane_group const& group, bool wishes, u32 item) const {
    bool const mine = wishes && mark(item, bit_of(item)) != 0;
    lane_mask const together = simt::ballot(group.mask, mine);
    if (!mine) return;
    if constexpr (is_virtual) {
      if (!queue.push(group_of(together), item)) forget(item, bit_of(item));
    } else {
      queue.push(group_of(together), item);
    }
  }

  /// Queues the items `first` + i for the bits i of the leader's `which`, unless they are queued.
  /// All of them have their bits in one word. All lanes of the group call.
  WARPHEAP_DEVICE void push_all(lane_group const& group, u32 first, u32 which) const {
    u32 const shift = first % 32;
    u32 const mine = broadcast(group, group.leads && which != 0 ? mark(first, which << shift) : 0);
    if constexpr (is_virtual) {
      u32 const refused = mine & ~queue.push_all(group, first - shift, mine);
      if (group.leads && refused != 0) forget(first, refused);
    } else {
      queue.push_all(group, first - shift, mine);
    }
  }

  /// Takes from a virtual queue what keeps its oldest chunk, or its last one. All lanes of the
  /// group call.
  WARPHEAP_DEVICE void drain(lane_group const& group) const {
    queue.drain(group, [this](u32 item) {
      if (item < queue.items()) clear(item);
    });
  }

 private:
  WARPHEAP_DEVICE static u32 bit_of(u32 item) { return 1u << item % 32; }
  WARPHEAP_DEVICE atomic_ref<u32> word(u32 item) const { return atomic_ref<u32>{queued[item / 32]}; }

  /// Clears the bit of an item that we popped, and returns the item.
  WARPHEAP_DEVICE u32 clear(u32 item) const {
    // acq_rel: pairs with mark() (queue.H2).
    word(item).fetch_and(~bit_of(item), order::acq_rel);
    return item;
  }
  /// Clears the bits of items that the queue refused.
  WARPHEAP_DEVICE void forget(u32 item, u32 bits) const {
    // relaxed: a page whose free meets the bit before this is found by a search.
    word(item).fetch_and(~bits, order::relaxed);
  }

  /// Sets `bits` of the item's word; returns those that were clear, which the caller pushes
  /// (queue.H1).
  WARPHEAP_DEVICE u32 mark(u32 item, u32 bits) const {
    // acq_rel: pairs with pop() (queue.H2).
    return bits & ~word(item).fetch_or(bits, order::acq_rel);
  }
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::queue_parts
