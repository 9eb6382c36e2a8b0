// What one row remembers for one class, in one word: the slab it uses, and how many blocks were demanded since that did not
// fit. All of it is a cache: a thread that uses a slab named here asks the slab.
//
//    63         32 31        0
//   |   demand   |  current   |     current: slab + 1; 0: none
#pragma once

#include "../../../platform/types.hpp"

namespace warpheap {

struct slab_hint {
  u64 word = 0;

  WARPHEAP_HOST_DEVICE constexpr u32 current() const { return static_cast<u32>(word); }
  /// Blocks demanded so far, modulo 2^32.
  WARPHEAP_HOST_DEVICE constexpr u32 demand() const { return static_cast<u32>(word >> 32); }

  /// What demanding `blocks` adds.
  WARPHEAP_HOST_DEVICE static constexpr u64 demand_of(u32 blocks) { return u64{blocks} << 32; }
  /// A row that uses `slab`, of which nothing was demanded in vain.
  WARPHEAP_HOST_DEVICE static constexpr slab_hint of(u32 slab) { return {u64{slab} + 1}; }
};

}  // namespace warpheap
