// SPDX-License-Identifier: Apache-2.0
// Lanes that do one job together: one lane a small one, a warp a long one, and a thread block a
// huge one. The code is the same for all teams; the lane of a team of one has rank 0 and waits for
// no other.
#pragma once

#include "../platform/simt.hpp"
#include "../util/bits.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// Of a team's lanes with a true predicate: those below the calling lane, and all.
struct votes {
  u32 before;
  u32 all;
};

/// What a team has, for all of its lanes together:
///
///   size               lanes
///   rank()             the calling lane's number among them
///   vote(predicate)    votes; a sync() comes before the next vote
///   from_first(value)  the value of the lane of rank 0; what that did before, like a malloc,
///                      happens before what the others do after
///   sync()             all lanes arrive; orders memory among them
template <class Team>
concept lane_team = requires(Team const team, bool predicate, u64 value) {
  {u32{Team::size}};
  {u32{team.rank()}};
  {votes{team.vote(predicate)}};
  {u64{team.from_first(value)}};
  team.sync();
};

/// The calling lane.
struct lone_lane {
  static constexpr u32 size = 1;
  WARPHEAP_DEVICE u32 rank() const { return 0; }
  WARPHEAP_DEVICE votes vote(bool predicate) const { return {0, predicate}; }
  WARPHEAP_DEVICE u64 from_first(u64 value) const { return value; }
  WARPHEAP_DEVICE void sync() const {}
};

/// All lanes of the calling warp, which must be full.
struct whole_warp {
  static constexpr u32 size = warp_lanes;
  WARPHEAP_DEVICE u32 rank() const { return simt::lane_id(); }
  WARPHEAP_DEVICE votes vote(bool predicate) const {
    auto const voters = simt::ballot(full_mask, predicate);
    return {popcount(voters & simt::lanes_below()), popcount(voters)};
  }
  WARPHEAP_DEVICE u64 from_first(u64 value) const {
    simt::sync_warp(full_mask);  // a shuffle orders no memory
    return simt::shuffle(full_mask, value, 0);
  }
  WARPHEAP_DEVICE void sync() const { simt::sync_warp(full_mask); }
};

/// All threads of the calling thread block: `Threads`, in full warps. `scratch`, in shared or
/// global memory, is the thread block's own.
template <u32 Threads>
class whole_block {
  static_assert(Threads % warp_lanes == 0, "whole_block: a thread block of whole warps");

 public:
  /// Threads of the thread block.
  static constexpr u32 size = Threads;
  /// Words of scratch: what one lane tells all, and the votes of each warp.
  static constexpr u32 scratch_words = 1 + size / warp_lanes;

  /// `scratch` has scratch_words words.
  WARPHEAP_DEVICE explicit whole_block(u64* scratch) : scratch_{scratch} {}

  /// The calling thread's number in its thread block.
  WARPHEAP_DEVICE u32 rank() const { return simt::thread_index(); }

  /// As in every lane_team.
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

  /// As in every lane_team.
  WARPHEAP_DEVICE u64 from_first(u64 value) const {
    if (rank() == 0) scratch_[0] = value;
    simt::sync_block();
    u64 const told = scratch_[0];
    simt::sync_block();  // all lanes have read before it is written again
    return told;
  }

  /// All threads of the thread block arrive.
  WARPHEAP_DEVICE void sync() const { simt::sync_block(); }

 private:
  u64* scratch_;
};

/// How many independent loads a lane of a team issues at once.
inline constexpr u32 reads_at_once = 4;

/// Copies `count` words by the lanes of a team, from memory that all of them can read.
template <lane_team Team, class Word>
WARPHEAP_DEVICE void copy_words(Team team, Word* to, Word const* from, u64 count) {
  for (u64 first = team.rank(); first < count; first += reads_at_once * team.size) {
    Word piece[reads_at_once];
    for (u32 k = 0; k < reads_at_once; ++k)
      if (first + k * team.size < count) piece[k] = from[first + k * team.size];
    for (u32 k = 0; k < reads_at_once; ++k)
      if (first + k * team.size < count) to[first + k * team.size] = piece[k];
  }
}

}}  // namespace warpheap::WARPHEAP_BACKEND
