// SPDX-License-Identifier: Apache-2.0
// Freed blocks held back for a while, so that a write to one of them is found, and a second free of
// it known as such. A ring of slots: each new block replaces the oldest, which goes back to the
// upstream heap.
//
//   slot: | address of a block, a multiple of 16 | leaving |     0: empty
//
//   checked.Q1  a block whose free has returned lies in a slot, or it has gone back to the
//       upstream heap.
//   checked.Q2  leaving: the thread that set the bit gives the block back, and then stores another
//       word. No other thread changes the slot until then.
//   checked.Q3  bytes = those of the blocks in slots.
//
// empty() uses this for an exact refusal. It visits every slot once, takes what lies there, and
// waits where a block is leaving. By checked.Q1 and checked.Q2, every block whose free returned
// before empty() began has gone back to the upstream heap when empty() returns. So a request that
// the upstream heap then refuses would be refused without a quarantine as well. Progress: a slot is
// waited for only while its thread is in free() of the upstream heap. hold() takes another slot
// where it would have to wait.
#pragma once

#include "../../platform/backoff.hpp"
#include "../../platform/simt.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace checked_parts {

/// View of the ring; a member of the heap's state in device memory, shared by all threads.
class quarantine {
 public:
  quarantine() = default;
  WARPHEAP_HOST_DEVICE quarantine(u64* entries, u32 count, u64 most_bytes)
      : slots_{entries}, most_bytes_{most_bytes}, count_{count} {}

  WARPHEAP_HOST_DEVICE bool accepts(u64 bytes) const { return count_ != 0 && bytes <= most_bytes_; }

  /// Holds a freed block of `bytes` bytes back. `give_back(address)` gives another to the
  /// upstream heap and returns its bytes; it is called for each block that has to make room.
  template <class GiveBack>
  WARPHEAP_DEVICE void hold(void* address, u64 bytes, GiveBack give_back) {
    // relaxed: a count (checked.Q3).
    u64 held = atomic_ref<u64>{bytes_}.fetch_add(bytes, order::relaxed) + bytes;
    u64 const ticket = place(reinterpret_cast<u64>(address), give_back);
    for (u32 i = 1; held > most_bytes_ && i < count_; ++i) {
      take((ticket + i) % count_, give_back);
      // relaxed: a count.
      held = atomic_ref<u64>{bytes_}.load(order::relaxed);
    }
  }

  /// Gives back every block whose free has returned (checked.Q1). Returns whether there may have
  /// been any.
  template <class GiveBack>
  WARPHEAP_DEVICE bool empty(GiveBack give_back) {
    // relaxed: a free that happens before this call has drawn its ticket before, and no load misses
    // that.
    u64 const drawn = atomic_ref<u64>{tickets_}.load(order::relaxed);
    if (drawn == 0) return false;
    for (u32 i = 0; i < count_; ++i) {
      u64 const slot = (drawn + i) % count_;
      if (take(slot, give_back) == taken::leaving) wait_for(slot);
    }
    return true;
  }

  /// Forgets all, with the upstream heap.
  WARPHEAP_HOST_DEVICE u64* entries() const { return slots_; }
  WARPHEAP_HOST_DEVICE u32 count() const { return count_; }

 private:
  static constexpr u64 leaving = 1;
  enum class taken { nothing, block, leaving };

  WARPHEAP_DEVICE atomic_ref<u64> slot(u64 index) const { return atomic_ref<u64>{slots_[index]}; }

  /// Lays the block into the next slot, and gives back the one there. Returns the slot.
  template <class GiveBack>
  WARPHEAP_DEVICE u64 place(u64 address, GiveBack& give_back) {
    for (backoff wait;;) {
      // relaxed: tickets spread the threads over the slots; the slot orders memory.
      u64 const index = atomic_ref<u64>{tickets_}.fetch_add(1, order::relaxed) % count_;
      // relaxed: the compare-exchange checks it.
      u64 seen = slot(index).load(order::relaxed);
      if (seen & leaving) {  // checked.Q2: another thread's; there may be more slots
        wait.while_working();
        continue;
      }
      u64 const next = seen ? seen | leaving : address;
      // acq_rel: release: what was written to our block happens before the thread that gives it
      // back; acquire: what was written to the old block happens before us. Partners: each other,
      // and take().
      if (!slot(index).compare_exchange(seen, next, order::acq_rel, order::relaxed)) continue;
      if (next != address) leave(index, seen, address, give_back);
      return index;
    }
  }

  /// Takes what lies in a slot and gives it back.
  template <class GiveBack>
  WARPHEAP_DEVICE taken take(u64 index, GiveBack& give_back) {
    // acquire: an empty slot's last block went back before; pairs with the release in leave().
    u64 seen = slot(index).load(order::acquire);
    while (seen != 0 && !(seen & leaving)) {
      // acquire: pairs with the releases in place() and leave().
      if (slot(index).compare_exchange(seen, seen | leaving, order::acquire, order::acquire)) {
        leave(index, seen, 0, give_back);
        return taken::block;
      }
    }
    return seen == 0 ? taken::nothing : taken::leaving;
  }

  /// Gives back the block of a slot that is ours (checked.Q2), and stores the next.
  template <class GiveBack>
  WARPHEAP_DEVICE void leave(u64 index, u64 block, u64 next, GiveBack& give_back) {
    u64 const bytes = give_back(reinterpret_cast<void*>(block));
    // relaxed: a count.
    atomic_ref<u64>{bytes_}.fetch_sub(bytes, order::relaxed);
    // release: the block is freed before any thread sees the slot changed; pairs with the acquires
    // in take() and wait_for().
    slot(index).store(next, order::release);
  }

  WARPHEAP_DEVICE void wait_for(u64 index) const {
    backoff wait;
    // acquire: pairs with the release in leave().
    u64 const seen = slot(index).load(order::acquire);
    while (seen & leaving && slot(index).load(order::acquire) == seen) wait.while_working();
  }

  u64* slots_ = nullptr;
  u64 most_bytes_ = 0;
  u64 bytes_ = 0;
  u64 tickets_ = 0;
  u32 count_ = 0;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::checked_parts
