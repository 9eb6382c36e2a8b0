// SPDX-License-Identifier: Apache-2.0
// How the lists of a kernel are shared out: a short one is done by one lane, a long one by a warp,
// and a huge one by a thread block. Hubs have thousands of neighbours, or a hundred thousand, and
// the lanes of a warp would still be at one of those when all other lists are done.
#pragma once

#include "warpheap/sync/lane_team.hpp"
#include "warpheap/sync/warp_aggregate.hpp"

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND {

/// The thread blocks that do huge lists.
using huge_team = whole_block<512>;

/// An item of a lane: something with a list, or nothing.
enum class item_length { none, is_short, is_long, is_huge };

/// Items of more entries than this are long, or huge.
constexpr u32 long_list = 128, huge_list = 2048;
WARPHEAP_DEVICE inline item_length length_for(u32 entries) {
  if (entries > huge_list) return item_length::is_huge;
  return entries > long_list ? item_length::is_long : item_length::is_short;
}

/// Calls `work(team, item)` for the item of each lane that is not huge: the lane alone does a short
/// one, and long ones are done one after the other by all lanes of the warp, all of which call.
template <class Work>
WARPHEAP_DEVICE void share_by_length(item_length length, u64 item, Work work) {
  if (length == item_length::is_short) work(lone_lane{}, item);
  for (u32 rest = simt::ballot(full_mask, length == item_length::is_long); rest; rest &= rest - 1)
    work(whole_warp{}, simt::shuffle(full_mask, item, lowest_bit(rest)));
}

/// Huge items of a kernel, which the next one does.
struct huge_items {
  u64* items;
  u32* count;
  u64* scratch;  ///< huge_team::scratch_words for each thread block of the next kernel

  WARPHEAP_DEVICE void add(u64 item) const { items[aggregated_fetch_add(simt::active_mask(), *count)] = item; }

  /// Calls `work(team, item)` for each: every thread block, all of whose threads call, takes items
  /// in turn.
  template <class Work>
  WARPHEAP_DEVICE void share(Work work) const {
    huge_team const team{scratch + simt::block_index() * huge_team::scratch_words};
    for (u32 i = simt::block_index(); i < *count; i += simt::grid_dim()) {
      work(team, items[i]);
      team.sync();
    }
  }
};

}}  // namespace warpheap::tool::WARPHEAP_BACKEND
