// How many parts of something are full: pages of a region, regions of an access block.
//
//    63         32 31        0
//   |  withdrawals |  count   |
//
// The word is one sum, withdrawals * 2^32 + count. Its count may be below zero for a moment.
//
//   F1  count <= parts that are full, at every instant: a part is counted after it became full, and
//       withdrawn before it gets room. So a thread that finds all parts counted knows that all are
//       full, and that no thread is about to change it.
//   F2  the word never comes back to an old value after a withdrawal, so two equal looks have none
//       between them.
#pragma once

#include "../../../platform/types.hpp"

namespace warpheap {

/// A value of the word.
struct fill_count {
  u64 word = 0;

  static constexpr u64 withdrawal = u64{1} << 32;

  WARPHEAP_HOST_DEVICE constexpr i32 count() const { return static_cast<i32>(static_cast<u32>(word)); }
  WARPHEAP_HOST_DEVICE constexpr bool counts_all(u32 parts) const { return static_cast<u32>(word) == parts; }
  /// What withdrawing `parts` adds to the word.
  WARPHEAP_HOST_DEVICE static constexpr u64 withdrawing(u32 parts) { return withdrawal - parts; }
};

static_assert(fill_count{fill_count::withdrawing(1)}.count() == -1 &&
              fill_count{fill_count::withdrawing(1) + 1}.count() == 0);
static_assert(fill_count{16 + fill_count::withdrawing(1)}.word == fill_count::withdrawal + 15);

}  // namespace warpheap
