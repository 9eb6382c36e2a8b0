// What one row remembers for one class, in one word: the slab it uses, the one it will use next, and how many blocks were
// demanded since that did not fit. All of it is a cache: whoever uses a slab named here asks the slab.
//
//    63      50 49      25 24       0
//   |  demand  |   next   | current  |     slab + 1 each; 0: none
#pragma once

#include "../../../platform/types.hpp"

namespace warpheap {

struct slab_hint {
  static constexpr u32 slab_bits = 25;
  static constexpr u32 demand_shift = 2 * slab_bits;
  static constexpr u64 slab_mask = (u64{1} << slab_bits) - 1;
  /// Demand is counted modulo 2^14.
  static constexpr u32 max_demand = 1u << 13;

  u64 word = 0;

  WARPHEAP_HOST_DEVICE constexpr u32 current() const { return static_cast<u32>(word & slab_mask); }
  WARPHEAP_HOST_DEVICE constexpr u32 next() const { return static_cast<u32>((word >> slab_bits) & slab_mask); }
  WARPHEAP_HOST_DEVICE constexpr u32 demand() const { return static_cast<u32>(word >> demand_shift); }

  /// What demanding `blocks` adds.
  WARPHEAP_HOST_DEVICE static constexpr u64 demand_of(u32 blocks) { return u64{blocks} << demand_shift; }

  /// With `slab` in use, and the demand at 0 again.
  WARPHEAP_HOST_DEVICE constexpr slab_hint using_slab(u32 slab) const {
    return {(word & (slab_mask << slab_bits)) | (u64{slab} + 1)};
  }
  /// With `slab` to be used next.
  WARPHEAP_HOST_DEVICE constexpr slab_hint followed_by(u32 slab) const {
    return {(word & ~(slab_mask << slab_bits)) | (u64{slab} + 1) << slab_bits};
  }
  /// With the next slab in use; there is one.
  WARPHEAP_HOST_DEVICE constexpr slab_hint advanced() const { return {u64{next()}}; }
};

static_assert(slab_hint{}.using_slab(6).followed_by(8).current() == 7 && slab_hint{}.followed_by(8).next() == 9);
static_assert(slab_hint{}.using_slab(6).followed_by(8).advanced().current() == 9);

}  // namespace warpheap
