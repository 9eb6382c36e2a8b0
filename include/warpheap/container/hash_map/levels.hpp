// SPDX-License-Identifier: Apache-2.0
// The slots of a hash map, in levels. Where a level has no room for a key, the next one is made, as
// large as all before it together; nothing is moved. So a map grows while threads use it, and a
// thread waits at most for the memory of a level, not for the keys in it.
//
//   level   0  | n |        sectors of four slots, 64 bits each: 32 bytes, the unit in which a GPU
//           1  | n |        reads memory
//           2  |  2n  |
//           3  |    4n    |
//
// A key has a window in each level: some sectors, the first and the step between them by its hash.
// It is wide in a level that was planned for the keys, and narrow in one that they grow out of.
// Its path are the slots of its windows, level by level. A slot is empty, which is 0, or it holds
// a key, which may be erased.
//
//   map.M1  a slot that holds a key holds no other one while threads use the map; not even when the
//       key is erased.
//   map.M2  a key lies in the first slot of its path that held no other key when the key came. By
//       map.M1 those before it hold other keys as long as it is there, so each search on the way
//       finds it or an empty slot before which it cannot be.
//   map.M3  so no key is in two slots: threads that bring one go the same path, and the first to
//       change its slot has brought it.
//   map.M4  the state's `levels` counts the levels that threads may look at. They are zeroed before
//       and have an entry in the directory, neither of which changes while threads use the map.
//   map.M5  the state goes from (n, 0) to (n, allocating) by the one thread that is elected; from
//       there by that thread to (n, block), or back if the heap refuses; and to (n + 1, 0) by the
//       one that has counted the last chunk of the block as zeroed. Each chunk is zeroed by the
//       thread that has drawn its ticket. So a thread that has seen (n, allocating) and then (n, 0)
//       has seen a refusal.
//
//    63   59 58                  6 5       0
//   |   0   |   block's address   |  levels  |   the state; addresses in units of 16 bytes,
//                                                0: nothing is in the making, 1: allocating
//
//   map.M6  `first` is not null only if level 0 was made while no thread used the map. It does not
//       change while one does, so it is read without an order.
//
// Progress: a search never waits. A thread that needs a level that does not exist yet waits for the
// elected thread while that is in malloc, and for chunks whose tickets running threads have drawn;
// the rest it zeroes itself. Lanes of one warp may wait for each other. Source: windows of buckets
// after WarpCore (Jünger et al. 2020), levels after the array of tables of split-ordered lists
// (Shalev and Shavit 2006). Differs from both: a full window sends a key to the next level, and no
// key is ever moved.
#pragma once

#include "../../platform/assert.hpp"
#include "../../platform/backoff.hpp"
#include "../../platform/point.hpp"
#include "../../platform/simt.hpp"
#include "../../util/bits.hpp"
#include "../../util/random.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace map_parts {

/// What decides a key's windows: two numbers by its hash, fractions of a level in units of 2^-32.
struct key_place {
  u32 first;  ///< its last bit: the half of a sector that is first
  u32 step;
};

template <class Parts>
class levels {
 public:
  static constexpr u32 sector_slots = 4;
  static constexpr u32 most_levels = 32;
  static constexpr u64 most_sectors = u64{1} << 31;  ///< of a level: 64 GiB

  struct level {
    u64* begin;
    u32 sectors;

    /// Calls look(slot, word) for the first `count` pairs of slots of the key's window, until it
    /// returns true; whether it did. A word is what the slot holds, relaxed.
    template <class Look>
    WARPHEAP_DEVICE bool search(key_place at, u32 count, Look look) const {
      u32 const step = scale_below(at.step, sectors - 1) + 1;
      u32 sector = scale_below(at.first, sectors), half = at.first & 1;
      WARPHEAP_NO_UNROLL
      for (u32 pair = 0; pair < count; ++pair, half ^= 1) {
        u64* const here = begin + (u64{sector} << 2 | half << 1);
        word_pair const seen = load_pair(here);
        if (look(here[0], seen.first) || look(here[1], seen.second)) return true;
        if (pair % 2 == 0) continue;
        sector += step;
        if (sector >= sectors) sector -= sectors;
      }
      return false;
    }
  };

  /// Whether level 0 was made while no thread used the map (map.M6).
  WARPHEAP_DEVICE bool has_first() const { return first_ != nullptr; }
  WARPHEAP_DEVICE level first() const { return {first_, sectors_ - 1}; }

  /// Levels that there are. acquire: their zeros and their places in the directory; pairs with the
  /// release in publish().
  WARPHEAP_DEVICE u32 published() const {
    return levels_of(atomic_ref<u64>{const_cast<u64&>(state_)}.load(order::acquire));
  }

  /// Level `i`, below what published() has returned.
  WARPHEAP_DEVICE level operator[](u32 i) const { return {slots_of(blocks_[i]), static_cast<u32>(sectors_of(i)) - 1}; }

  /// Pairs of slots in a window of level `i`.
  WARPHEAP_DEVICE u32 pairs(u32 i) const {
    return 2 * (i == 0 && is_planned() ? Parts::planned_window : Parts::grown_window);
  }

  /// Searches the key's path, and makes levels as it goes, until look(slot, word) returns true.
  /// False if the heap refused the next level.
  template <class Heap, class Look>
  WARPHEAP_DEVICE bool search_and_grow(Heap const& heap, key_place at, Look look) {
    for (u32 i = 0; i < most_levels; ++i) {
      bool const is_first = i == 0 && has_first();
      if (!is_first && published() <= i && !make(heap, this, i)) return false;
      if ((is_first ? first() : (*this)[i]).search(at, pairs(i), look)) return true;
    }
    return false;
  }

  /// Makes sure that there is level `i`, which is the next one if it is not there. False if the
  /// heap refused it, to us or to the thread that we waited for.
  template <class Heap>
  WARPHEAP_COLD static bool make(Heap heap, levels* all, u32 i) {
    atomic_ref<u64> const state{all->state_};
    bool waited = false;
    WARPHEAP_NO_UNROLL
    for (backoff nap;; nap.while_working()) {
      // acquire: the levels, and the head of a block; pairs with the releases in begin() and
      // publish().
      u64 seen = state.load(order::acquire);
      if (levels_of(seen) > i) return true;
      u64 const block = block_of(seen);
      if (block == allocating) waited = true;
      else if (block != 0) all->zero(block, i);
      else if (waited) return false;
      // map.M5. relaxed: we have acquired what we would replace.
      else if (!Parts::elects || state.compare_exchange(seen, state_of(i, allocating), order::relaxed, order::relaxed))
        if (!all->begin(heap, i)) return false;
    }
  }

  // While no other thread uses the map:

  /// Levels, without an order.
  WARPHEAP_HOST_DEVICE u32 count() const { return levels_of(state_); }
  /// Sectors of all levels' blocks.
  WARPHEAP_HOST_DEVICE u64 sectors() const { return count() != 0 ? sectors_of(0) << (count() - 1) : 0; }
  WARPHEAP_HOST_DEVICE u64 capacity() const { return (sectors() - count()) * sector_slots; }

  /// Before there is a level: how large the first one's block is to be.
  WARPHEAP_DEVICE void plan(u64 sectors) {
    u64 const at_most = sectors < most_sectors ? sectors : most_sectors;
    sectors_ = static_cast<u32>(at_most < 2 ? 2 : at_most);
  }

  WARPHEAP_DEVICE bool is_planned() const { return sectors_ != 0; }

  /// Level 0, if there is one, is first() from now on.
  WARPHEAP_DEVICE void keep_first() {
    if (count() != 0) first_ = slots_of(blocks_[0]);
  }

  /// Frees all levels; there is none then, as in zeroed memory.
  template <class Heap>
  WARPHEAP_DEVICE void destroy(Heap const& heap) {
    for (u32 i = 0; i < count(); ++i) heap.free(reinterpret_cast<void*>(blocks_[i]));
    *this = {};
  }

 private:
  /// What a block begins with. It takes one of the block's sectors, so that those with slots are
  /// aligned, and a block's size is what was planned: often a power of two, which allocators like.
  struct head {
    u64 sectors;  ///< with slots
    u32 tickets;  ///< chunks that threads have begun to zero, or more
    u32 zeroed;   ///< chunks
  };
  struct alignas(16) zeros {
    u64 words[2] = {};
  };

  static constexpr u64 allocating = 16;
  static constexpr u64 sector_bytes = sector_slots * sizeof(u64);

  WARPHEAP_HOST_DEVICE static constexpr u64 state_of(u32 levels, u64 block) { return block >> 4 << 6 | levels; }
  WARPHEAP_HOST_DEVICE static constexpr u32 levels_of(u64 state) { return static_cast<u32>(state & 63); }
  WARPHEAP_HOST_DEVICE static constexpr u64 block_of(u64 state) { return state >> 6 << 4; }

  /// Of the block of level `i`.
  WARPHEAP_HOST_DEVICE u64 sectors_of(u32 i) const {
    u64 const first = sectors_ != 0 ? sectors_ : Parts::first_sectors;
    return i == 0 ? first : first << (i - 1);
  }
  WARPHEAP_DEVICE static u64* slots_of(u64 block) {
    return reinterpret_cast<u64*>(align_up(block + sizeof(head), sector_bytes));
  }

  /// The elected thread allocates level `i`. False if the heap refused.
  template <class Heap>
  WARPHEAP_DEVICE bool begin(Heap const& heap, u32 i) {
    u64 const sectors = sectors_of(i);
    auto* const of = static_cast<head*>(sectors <= most_sectors ? heap.malloc(sector_bytes * sectors) : nullptr);
    u64 const block = reinterpret_cast<u64>(of);
    WARPHEAP_ASSERT(block % 16 == 0 && block >> 57 == 0, "hash_map: a block's address is not aligned, or too high");
    if (of) *of = {sectors - 1, 0, 0};
    WARPHEAP_POINT("map.begin.before_release");
    // release: the head, and what malloc ordered; and the levels, for those that see no later state
    // but this. Pairs with the acquires in make() and published().
    if (Parts::zeroes_first || !of) atomic_ref<u64>{state_}.store(state_of(i, block), order::release);
    else publish(block, i), zero(block, i);
    return of != nullptr;
  }

  /// Zeroes chunks of the block of level `i`, until none is left.
  WARPHEAP_DEVICE void zero(u64 block, u32 i) {
    auto& of = *reinterpret_cast<head*>(block);
    u64 const sectors = of.sectors;
    u32 const chunks = static_cast<u32>(div_ceil(sectors, Parts::chunk_sectors));
    atomic_ref<u32> const tickets{of.tickets};
    WARPHEAP_NO_UNROLL
    // relaxed: the thread that draws a ticket alone has its chunk. The load keeps threads that come
    // again and again from drawing 2^32.
    while (tickets.load(order::relaxed) < chunks) {
      u32 const chunk = tickets.fetch_add(1, order::relaxed);
      if (chunk >= chunks) return;
      u64 const first = u64{chunk} * Parts::chunk_sectors, end = first + Parts::chunk_sectors;
      auto* const halves = reinterpret_cast<zeros*>(slots_of(block));
      for (u64 at = 2 * first; at < 2 * (end < sectors ? end : sectors); ++at) halves[at] = {};
      // release: our zeros, for the one that publishes; acquire: the others', if that is us.
      if (atomic_ref<u32>{of.zeroed}.fetch_add(1, order::acq_rel) + 1 == chunks && Parts::zeroes_first)
        publish(block, i);
    }
  }

  /// map.M4. By the one thread that may.
  WARPHEAP_DEVICE void publish(u64 block, u32 i) {
    blocks_[i] = block;
    // release: the level; pairs with the acquires in published() and make().
    atomic_ref<u64>{state_}.store(state_of(i + 1, 0), Parts::releases ? order::release : order::relaxed);
  }

  u64* first_ = nullptr;
  u32 sectors_ = 0;  ///< of level 0; 0: Parts::first_sectors
  u64 state_ = 0;
  u64 blocks_[most_levels] = {};
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::map_parts
