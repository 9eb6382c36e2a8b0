// What the quick path leaves to the walk.
#pragma once

#include "../../../platform/types.hpp"

namespace warpheap {

/// What a request begins its walk with, in one register.
///
///   31 29 28 25 24      0
///  |  0  | row | slab + 1 |     slab + 1 = 0: no slab
struct slab_lead {
  u32 word = 0;

  slab_lead() = default;
  /// `row` says which of its rows the multiprocessor uses; its lowest bits count.
  WARPHEAP_HOST_DEVICE constexpr slab_lead(u32 row, u32 slab_plus_1) : word{(row & 15) << 25 | slab_plus_1} {}

  WARPHEAP_HOST_DEVICE constexpr u32 row() const { return (word >> 25) & 15; }
  WARPHEAP_HOST_DEVICE constexpr u32 slab_plus_1() const { return word & ((1u << 25) - 1); }
};

static_assert(slab_lead{29, 1u << 24}.row() == 13 && slab_lead{13, 1u << 24}.slab_plus_1() == 1u << 24);

}  // namespace warpheap
