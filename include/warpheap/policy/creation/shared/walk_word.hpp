// SPDX-License-Identifier: Apache-2.0
// A word of a bitmap that lanes walk over: which of up to 32 pages are taken, and whether a lane
// has locked the word.
//
//    63     33    32    31              0
//   |    0    |  lock  |     taken      |     bit i = page i of the word
//
// Where words are never locked, all 64 bits may stand for pages.
//
//   walk.K1  a taken bit has one owner: the thread that set it by a read-modify-write that found it
//       clear, until the owner clears it.
//   walk.K2  where words are locked at all, only the lane that set the lock bit from 0 to 1 sets
//       taken bits; frees clear them without a lock.
//   walk.K3  bits of pages that do not exist are set from the start, for good.
//
// Lock and bits are one word. So one operation takes the lock and reads the bits, and one other
// publishes what was taken and opens the lock. The paper keeps the locks in a bitmap of their own.
#pragma once

#include "../../../util/bits.hpp"

namespace warpheap {

struct walk_word {
  static constexpr u64 lock_bit = u64{1} << 32;

  u64 word;

  WARPHEAP_HOST_DEVICE constexpr bool locked() const { return (word & lock_bit) != 0; }
  /// Free pages. The holder of a locked word may be about to take some of them.
  WARPHEAP_HOST_DEVICE constexpr u32 free(u32 valid = full_word) const { return ~static_cast<u32>(word) & valid; }
  /// Free pages, in words of 64 pages.
  WARPHEAP_HOST_DEVICE constexpr u64 free(u64 valid) const { return ~word & valid; }
};

static_assert(walk_word{walk_word::lock_bit | 5}.free(7u) == 2 && walk_word{walk_word::lock_bit}.locked());
static_assert(walk_word{5}.free(~u64{0}) == ~u64{5});
static_assert(walk_word{full_word}.free() == 0 && !walk_word{full_word}.locked());

}  // namespace warpheap
