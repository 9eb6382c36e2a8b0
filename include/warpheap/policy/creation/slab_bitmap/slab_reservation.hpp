// What a reservation gives to the search that follows it.
#pragma once

#include "../../../platform/types.hpp"

namespace warpheap {

/// Blocks of one slab promised to a caller, which now looks for them in its bitmap. One word, so
/// that it stays in registers.
///
///   63 62 61    56 55 54   32 31      0
///  | R | S | blocks | N | place |  slab  |
///
/// R: the slab was less than three quarters full before.
/// S: it reached its soft limit by this promise.
/// N: the next blocks from `place` on have never been used.
class slab_reservation {
 public:
  static constexpr u32 nowhere = (1u << 23) - 1;  ///< `place` of a promise that was made in vain

  slab_reservation() = default;
  WARPHEAP_HOST_DEVICE slab_reservation(u32 slab, u32 blocks, u32 place)
      : word_{u64{blocks} << 56 | u64{place} << 32 | slab} {}

  WARPHEAP_HOST_DEVICE u32 slab() const { return static_cast<u32>(word_); }
  /// Promised and not yet claimed, at most 32; 0: there was no room.
  WARPHEAP_HOST_DEVICE u32 blocks() const { return static_cast<u32>(word_ >> 56) & 63; }
  WARPHEAP_HOST_DEVICE u32 place() const { return static_cast<u32>(word_ >> 32) & nowhere; }
  WARPHEAP_HOST_DEVICE bool is_new() const { return (word_ & new_bit) != 0; }
  WARPHEAP_HOST_DEVICE bool reaches_soft() const { return (word_ & soft_bit) != 0; }
  WARPHEAP_HOST_DEVICE bool roomy() const { return (word_ & roomy_bit) != 0; }

  /// This reservation, with what is known of the slab.
  WARPHEAP_HOST_DEVICE slab_reservation known(bool is_new, bool reaches_soft, bool roomy) const {
    slab_reservation same = *this;
    same.word_ |= (is_new ? new_bit : 0) | (reaches_soft ? soft_bit : 0) | (roomy ? roomy_bit : 0);
    return same;
  }

 private:
  static constexpr u64 new_bit = u64{1} << 55, soft_bit = u64{1} << 62, roomy_bit = u64{1} << 63;

  u64 word_ = 0;
};

}  // namespace warpheap
