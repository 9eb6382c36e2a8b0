// SPDX-License-Identifier: Apache-2.0
// The 128 bytes at the head of a page that begins a bin, and of the first page of a chunk.
//
// Role and count are one word, the life word (words.hpp).
//
//   bins.N1  free is lowered before a bit is set, and raised after it is cleared: bits set <=
//       capacity - free. So a thread that lowered it by k finds k clear bits, and others cannot
//       take all of them.
//   bins.N2  free = capacity means that no block of the bin is live. Only such a bin becomes dead.
//   bins.N3  bits beyond the last block are never set.
//   bins.N4  linked, next and previous change under the mutex of the bin's list; a bin that is not
//       linked keeps its next, for readers that stand on it.
//   bins.N5  at rest: linked <=> free > 0.
//   bins.N6  a thread that cleared bits of a bin and has not yet raised free by as many keeps the
//       bin from dying (bins.N2), so its role stays from the clear on. Role and count are one word:
//       a free raises the count by an exchange that expects the role by which it found its block.
//       If the exchange fails, the free learns whether the bin has become another one since.
//
// A bitmap word is changed by read-modify-writes alone between a bin's set-up and its end, so the
// release of a thread that cleared a bit reaches the thread that sets it next.
#pragma once

#include "../../../../sync/srcu.hpp"
#include "layout.hpp"
#include "words.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace bins {

struct bin_header {
  srcu_node node;  ///< for the reclamation of the bin; first, so that its address is the bin's
  u64 life;
  u32 next, previous;  ///< bins of the list, by number; 0: none
  u32 linked;
  u32 number;  ///< the bin's own: the page of the pool that it begins with
  u64 unused[4];
  u64 bits[8];  ///< a bit a block, set while it is live
};
static_assert(sizeof(bin_header) == header_bytes);

/// At a chunk's start. All but `heads` is read and written under the chunk mutex of its arena.
struct chunk_header {
  u32 free_pages;
  u32 next, previous;  ///< chunks of the arena with free pages, by number plus 1
  u32 linked;
  u64 taken[2];  ///< a bit a page, set if it is special or a bin's
  /// a bit a page, set if a bin begins there, or began there last; maintained only if bins may have
  /// several pages
  u64 heads[2];
};
static_assert(sizeof(chunk_header) <= header_bytes);

/// A bin, as lanes change it. A pointer, trivially copyable.
class bin_view {
 public:
  WARPHEAP_DEVICE explicit bin_view(bin_header* header) : header_{header} {}
  WARPHEAP_DEVICE static bin_view of(srcu_node& node) { return bin_view{reinterpret_cast<bin_header*>(&node)}; }

  WARPHEAP_DEVICE atomic_ref<u64> life() const { return atomic_ref<u64>{header_->life}; }
  WARPHEAP_DEVICE bin_role role() const { return bin_life::role_of(life().load(order::relaxed)); }
  WARPHEAP_DEVICE atomic_ref<u32> next() const { return atomic_ref<u32>{header_->next}; }
  WARPHEAP_DEVICE atomic_ref<u32> previous() const { return atomic_ref<u32>{header_->previous}; }
  WARPHEAP_DEVICE atomic_ref<u32> linked() const { return atomic_ref<u32>{header_->linked}; }
  WARPHEAP_DEVICE atomic_ref<u32> number() const { return atomic_ref<u32>{header_->number}; }
  WARPHEAP_DEVICE atomic_ref<u64> bits(u32 word) const { return atomic_ref<u64>{header_->bits[word]}; }
  WARPHEAP_DEVICE srcu_node& node() const { return header_->node; }

  /// Lowers the free blocks by up to `wanted`. Returns by how many (bins.N1); `exhausted` says that
  /// none are left.
  WARPHEAP_DEVICE u32 try_take(u32 wanted, bool& exhausted) const {
    // relaxed: the count says how many bits are clear, and the claim of the bits orders the blocks'
    // contents.
    u64 seen = life().load(order::relaxed);
    for (;;) {
      u32 const taken = bin_life::taken_of(seen, wanted);
      if (taken == 0) return 0;
      if (life().compare_exchange(seen, seen - taken * bin_life::one_block, order::relaxed, order::relaxed)) {
        exhausted = bin_life::free_blocks(seen) == taken;
        return taken;
      }
    }
  }

  /// Makes an empty bin of `capacity` blocks dead. False if it is not empty any more (bins.N2).
  WARPHEAP_DEVICE bool try_kill(bin_role role, u32 capacity) const {
    u64 seen = bin_life::of(role, capacity);
    return life().compare_exchange(seen, bin_life::of(role, 0) | bin_life::dead, order::relaxed, order::relaxed);
  }

  /// Claims up to `wanted` blocks of one bitmap word. The caller has lowered the bin's free blocks
  /// by as many before (bins.N1).
  ///
  /// valid    mask of the blocks that the word has (bins.N3)
  /// turn     the bit of the word from which on to take
  /// returns  mask of the blocks now ours; 0 if the word has none
  WARPHEAP_DEVICE u64 claim(u32 word, u32 wanted, u64 valid, u32 turn) const {
    // relaxed: a hint; the fetch_or says what was free.
    u64 const free = ~bits(word).load(order::relaxed) & valid;
    if (free == 0) return 0;
    u64 const chosen = rotate_left(lowest_bits(rotate_left(free, 0 - turn), wanted), turn);
    // acquire: what the last owners did to the blocks; pairs with the release in give_back().
    return chosen & ~bits(word).fetch_or(chosen, order::acquire);
  }

  /// Clears the bits of `blocks`. Returns those that were set; if they are fewer, a block was freed
  /// twice.
  WARPHEAP_DEVICE u64 give_back(u32 word, u64 blocks) const {
    // release: what the owners did to the blocks; pairs with the acquires in claim() and
    // wait_for_owners().
    return blocks & bits(word).fetch_and(~blocks, order::release);
  }

  /// Waits until the bits of an empty bin are seen to be clear. Their owners cleared them before
  /// they raised the count, but nothing orders the two. All that the owners did to their blocks
  /// then happens before what we do.
  WARPHEAP_DEVICE void wait_for_owners(u32 words) const {
    WARPHEAP_NO_UNROLL
    for (u32 word = 0; word < words; ++word) {
      // A read-modify-write returns the newest value. acquire: pairs with the release in
      // give_back().
      for (backoff nap; bits(word).fetch_or(0, order::acquire) != 0;) nap.while_working();
    }
  }

 private:
  bin_header* header_;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::bins
