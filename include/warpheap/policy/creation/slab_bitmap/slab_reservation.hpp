// What a reservation gives to the search that follows it.
#pragma once

#include "../../../platform/types.hpp"

namespace warpheap {

/// Blocks of one slab promised to a caller, who now looks for them in its bitmap. One word, so that it stays in registers.
///
///   63 62 61    56 55    32 31        0
///  | R | S | blocks |  place  |   slab    |
///
/// R: the slab was at most half full before.   S: it reached its soft limit by this promise.
class slab_reservation {
 public:
  /// `place` when nothing is known of where free blocks are.
  static constexpr u32 anywhere = (1u << 24) - 1;

  slab_reservation() = default;
  WARPHEAP_HOST_DEVICE slab_reservation(u32 slab, u32 blocks, u32 place, bool reaches_soft = false, bool roomy = false)
      : word_{u64{roomy} << 63 | u64{reaches_soft} << 62 | u64{blocks} << 56 | u64{place} << 32 | slab} {}

  WARPHEAP_HOST_DEVICE u32 slab() const { return static_cast<u32>(word_); }
  /// Promised and not yet claimed, at most 32; 0: there was no room.
  WARPHEAP_HOST_DEVICE u32 blocks() const { return static_cast<u32>(word_ >> 56) & 63; }
  /// Where free blocks are likely.
  WARPHEAP_HOST_DEVICE u32 place() const { return static_cast<u32>(word_ >> 32) & anywhere; }
  WARPHEAP_HOST_DEVICE bool roomy() const { return word_ >> 63; }
  WARPHEAP_HOST_DEVICE bool reaches_soft() const { return (word_ >> 62) & 1; }

 private:
  u64 word_ = 0;
};

}  // namespace warpheap
