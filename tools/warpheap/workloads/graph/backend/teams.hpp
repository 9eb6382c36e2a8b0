// Lanes that do one list together: one lane a short one, and a whole warp a long one (hubs have
// thousands of neighbours). The code for both is the same; a team of one has rank 0 and no other
// lane to wait for.
#pragma once

#include "warpheap/platform/simt.hpp"
#include "warpheap/util/bits.hpp"

namespace warpheap::tool {
inline namespace WARPHEAP_BACKEND {

struct lone_lane {
  static constexpr u32 size = 1;
  WARPHEAP_DEVICE u32 rank() const { return 0; }
  WARPHEAP_DEVICE u32 ballot(bool predicate) const { return predicate; }
  WARPHEAP_DEVICE u64 from_first(u64 value) const { return value; }
  WARPHEAP_DEVICE void sync() const {}
};

/// All 32 lanes of the calling warp.
struct whole_warp {
  static constexpr u32 size = warp_lanes;
  WARPHEAP_DEVICE u32 rank() const { return simt::lane_id(); }
  WARPHEAP_DEVICE u32 ballot(bool predicate) const { return simt::ballot(full_mask, predicate); }
  /// The value of the lane of rank 0.
  WARPHEAP_DEVICE u64 from_first(u64 value) const { return simt::shuffle(full_mask, value, 0); }
  WARPHEAP_DEVICE void sync() const { simt::sync_warp(full_mask); }
};

/// An item of a lane: something with a list, or nothing.
enum class item_length { none, is_short, is_long };

/// Items of more entries than this are long.
constexpr u32 long_list = 128;
WARPHEAP_DEVICE inline item_length length_for(u32 entries) {
  return entries > long_list ? item_length::is_long : item_length::is_short;
}

/// Calls `work(team, item)` for the item of each lane: the lane alone does a short one, and long
/// ones are done one after the other by all lanes of the warp, all of which call.
template <class Work>
WARPHEAP_DEVICE void share_by_length(item_length length, u64 item, Work work) {
  if (length == item_length::is_short) work(lone_lane{}, item);
  for (u32 rest = simt::ballot(full_mask, length == item_length::is_long); rest; rest &= rest - 1)
    work(whole_warp{}, simt::shuffle(full_mask, item, lowest_bit(rest)));
}

}  // namespace WARPHEAP_BACKEND
}  // namespace warpheap::tool
