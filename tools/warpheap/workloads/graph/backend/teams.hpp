// SPDX-License-Identifier: Apache-2.0
// Lanes that do one list together: one lane a short one, a warp a long one, and a thread block a
// huge one. Hubs have thousands of neighbours, or a hundred thousand, and the lanes of a warp would
// still be at one of those when all other lists are done. The code is the same for all teams; a
// team of one has rank 0 and no other lane to wait for.
#pragma once

#include "warpheap/sync/warp_aggregate.hpp"

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND {

/// Of a team's lanes with a true predicate: those below the calling lane, and all.
struct votes {
  u32 before;
  u32 all;
};

// A team has, for all of its lanes together:
//
//   vote(predicate)    votes; a sync() comes before the next vote
//   from_first(value)  the value of the lane of rank 0
//   sync()             all lanes arrive; orders memory among them

struct lone_lane {
  static constexpr u32 size = 1;
  WARPHEAP_DEVICE u32 rank() const { return 0; }
  WARPHEAP_DEVICE votes vote(bool predicate) const { return {0, predicate}; }
  WARPHEAP_DEVICE u64 from_first(u64 value) const { return value; }
  WARPHEAP_DEVICE void sync() const {}
};

/// All 32 lanes of the calling warp.
struct whole_warp {
  static constexpr u32 size = warp_lanes;
  WARPHEAP_DEVICE u32 rank() const { return simt::lane_id(); }
  WARPHEAP_DEVICE votes vote(bool predicate) const {
    u32 const voters = simt::ballot(full_mask, predicate);
    return {popcount(voters & simt::lanes_below()), popcount(voters)};
  }
  WARPHEAP_DEVICE u64 from_first(u64 value) const { return simt::shuffle(full_mask, value, 0); }
  WARPHEAP_DEVICE void sync() const { simt::sync_warp(full_mask); }
};

/// All 512 threads of the calling thread block, which has `scratch` to itself.
class whole_block {
 public:
  static constexpr u32 size = 512;
  /// Words of scratch: what one lane tells all, and the votes of each warp.
  static constexpr u32 scratch_words = 1 + size / warp_lanes;

  WARPHEAP_DEVICE explicit whole_block(u64* scratch) : scratch_{scratch} {}

  WARPHEAP_DEVICE u32 rank() const { return simt::thread_index(); }

  WARPHEAP_DEVICE votes vote(bool predicate) const {
    auto const own = whole_warp{}.vote(predicate);
    if (simt::lane_id() == 0) scratch_[1 + simt::warp_id()] = own.all;
    simt::sync_block();
    votes sum{own.before, 0};
    for (u32 warp = 0; warp < size / warp_lanes; ++warp) {
      auto const voters = static_cast<u32>(scratch_[1 + warp]);
      if (warp < simt::warp_id()) sum.before += voters;
      sum.all += voters;
    }
    return sum;
  }

  WARPHEAP_DEVICE u64 from_first(u64 value) const {
    if (rank() == 0) scratch_[0] = value;
    simt::sync_block();
    u64 const told = scratch_[0];
    simt::sync_block();  // all have read before it is written again
    return told;
  }

  WARPHEAP_DEVICE void sync() const { simt::sync_block(); }

 private:
  u64* scratch_;
};

/// What a lane does at once, of a list or a batch.
constexpr u32 at_once = 4;

/// Copies `count` words by the lanes of a team. Each has several reads under way before it writes:
/// they may be of memory that is far away.
template <class Team, class Word>
WARPHEAP_DEVICE void copy_words(Team team, Word* to, Word const* from, u64 count) {
  for (u64 first = team.rank(); first < count; first += at_once * team.size) {
    Word piece[at_once];
    for (u32 k = 0; k < at_once; ++k)
      if (first + k * team.size < count) piece[k] = from[first + k * team.size];
    for (u32 k = 0; k < at_once; ++k)
      if (first + k * team.size < count) to[first + k * team.size] = piece[k];
  }
}

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
  u64* scratch;  ///< whole_block::scratch_words for each thread block of the next kernel

  WARPHEAP_DEVICE void add(u64 item) const { items[aggregated_fetch_add(simt::active_mask(), *count)] = item; }

  /// Calls `work(team, item)` for each: every thread block, all of whose threads call, takes items
  /// in turn.
  template <class Work>
  WARPHEAP_DEVICE void share(Work work) const {
    whole_block const team{scratch + simt::block_index() * whole_block::scratch_words};
    for (u32 i = simt::block_index(); i < *count; i += simt::grid_dim()) {
      work(team, items[i]);
      team.sync();
    }
  }
};

}}  // namespace warpheap::tool::WARPHEAP_BACKEND
