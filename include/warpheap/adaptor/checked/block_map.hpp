// SPDX-License-Identifier: Apache-2.0
// Which addresses are blocks: two bits for every 16 bytes of the heap's memory, outside of it, so
// that no stray store of a kernel reaches them, and no content of a block is taken for a header.
//
//   a word of 64 bits: 32 addresses, 512 bytes of memory
//   | live known | live known | ... |  live known |
//
//   checked.M1  known at an address: a block was handed out there, and has not gone back to the
//       upstream heap.
//   checked.M2  live: its owner has not freed it. Live addresses are known.
//   checked.M3  one thread clears each live bit, and owns the block from then on: of several frees
//       of one block all others find the bit clear. It alone clears the known bit, before it gives
//       the block back to the upstream heap.
//
// Cost: 1/64 of the memory.
#pragma once

#include "../../platform/simt.hpp"
#include "../../policy/memory_range.hpp"
#include "../../util/bits.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace checked_parts {

/// The bits of one piece of memory, which starts at a multiple of 16.
struct mapped_range {
  u64 begin = 0;
  u64 bytes = 0;
  u64* words = nullptr;

  static constexpr u64 bytes_a_word = 512;

  WARPHEAP_HOST_DEVICE constexpr u64 word_count() const { return div_ceil(bytes, bytes_a_word); }
};

/// The two bits of one address; invalid for an address that cannot be a block's.
class block_bits {
 public:
  static constexpr u64 known = 1, live = 2;

  block_bits() = default;
  WARPHEAP_HOST_DEVICE block_bits(u64* word, u32 shift) : word_{word}, shift_{shift} {}

  WARPHEAP_HOST_DEVICE explicit operator bool() const { return word_ != nullptr; }

  /// Marks a new block (checked.M1, checked.M2).
  WARPHEAP_DEVICE void add() const {
    // release: the block's header and redzones happen before a thread that finds the bits; pairs
    // with the acquires in end_life() and seen().
    atomic_ref<u64>{*word_}.fetch_or((known | live) << shift_, order::release);
  }

  /// Claims the block for a free. Returns the bits as they were: the caller owns the block if it
  /// was live (checked.M3).
  WARPHEAP_DEVICE u64 end_life() const {
    // acquire: the block as it was laid out; pairs with the release in add().
    return atomic_ref<u64>{*word_}.fetch_and(~(live << shift_), order::acquire) >> shift_ & (known | live);
  }

  /// Forgets a block that goes back to the upstream heap (checked.M3).
  WARPHEAP_DEVICE void remove() const {
    // relaxed: the upstream heap orders this before the memory's next owner adds the bits again.
    atomic_ref<u64>{*word_}.fetch_and(~(known << shift_), order::relaxed);
  }

  WARPHEAP_DEVICE u64 seen() const {
    // acquire: pairs with the release in add().
    return atomic_ref<u64>{*word_}.load(order::acquire) >> shift_ & (known | live);
  }

 private:
  u64* word_ = nullptr;
  u32 shift_ = 0;
};

/// The bits of all memory of a heap, which has `Ranges` pieces.
template <u32 Ranges>
struct block_map {
  static constexpr u64 granule = 16;
  /// Words that find_below() looks at: blocks within the last 16 MiB.
  static constexpr u64 most_looks = 32768;

  mapped_range ranges[Ranges];

  /// The bits of `memory`; none if it lies outside, or is no multiple of 16.
  WARPHEAP_DEVICE block_bits find(void const* memory) const {
    u64 const address = reinterpret_cast<u64>(memory);
    mapped_range const* const range = range_of(address);
    if (!range || address % granule != 0) return {};
    u64 const place = (address - range->begin) / granule;
    return {range->words + place / 32, static_cast<u32>(place % 32 * 2)};
  }

  WARPHEAP_DEVICE bool contains(void const* memory) const { return range_of(reinterpret_cast<u64>(memory)) != nullptr; }

  /// The last known block at or before `memory`, which lies within; nullptr if there is none near.
  WARPHEAP_DEVICE void* find_below(void const* memory) const {
    u64 const address = reinterpret_cast<u64>(memory);
    mapped_range const* const range = range_of(address);
    if (!range) return nullptr;
    u64 const place = (address - range->begin) / granule;
    u64 word = place / 32, mask = low_mask(static_cast<u32>(place % 32 * 2 + 1));
    WARPHEAP_NO_UNROLL
    for (u64 looks = 0; looks < most_looks; ++looks, --word, mask = ~u64{0}) {
      // relaxed: a guess for a report; the block's header says whether it is right.
      u64 const found = atomic_ref<u64>{range->words[word]}.load(order::relaxed) & mask & every_known;
      if (found) return reinterpret_cast<void*>(range->begin + (word * 32 + log2_floor(found) / 2) * granule);
      if (word == 0) break;
    }
    return nullptr;
  }

  static constexpr u64 every_known = 0x5555'5555'5555'5555u;

 private:
  WARPHEAP_DEVICE mapped_range const* range_of(u64 address) const {
    for (auto const& range : ranges)
      if (address - range.begin < range.bytes) return &range;
    return nullptr;
  }
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::checked_parts
