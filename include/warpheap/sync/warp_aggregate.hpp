// SPDX-License-Identifier: Apache-2.0
// Lanes that came together act as one: a leader does the work, ranks share out the result.
//
// One address takes about a billion atomics a second, so 32 lanes that each add 1 to a counter are
// better served by one lane that adds 32. Nothing here waits for a lane that is not in the mask,
// and nothing orders memory: lanes whose writes the leader publishes call simt::sync_warp(mask)
// first.
//
//   aggregate.G1  mask, leader and size are the same in all lanes of the group; the ranks are 0 to
//       size - 1 in the order of the lanes.
//   aggregate.G2  the groups of group_by(mask, key) partition the mask.
//   aggregate.G3  of the lanes that draw from one counter, each holds a number of its own, and no
//       number is left out.
#pragma once

#include "../platform/simt.hpp"
#include "../util/bits.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// The calling lane's place among the lanes of `mask`. Each lane holds its own; mask, leader and
/// size are the same for all of them.
struct lane_group {
  lane_mask mask;  ///< lanes of the group, the calling one among them
  u32 leader;      ///< lowest lane of the mask
  u32 rank;        ///< lanes of the group below the calling one
  u32 size;        ///< lanes of the group
  bool leads;      ///< the calling lane is the leader
};

/// The group of the lanes of `mask`. No communication: each lane computes its own place.
WARPHEAP_DEVICE inline lane_group group_of(lane_mask mask) {
  auto const rank = popcount(mask & simt::lanes_below());
  return {mask, lowest_bit(mask), rank, popcount(mask), rank == 0};
}

/// The group of the lanes of `mask` that have our `key`.
///
/// mask    lanes that call; all of them do
/// returns to each lane its own group; the groups partition `mask`
template <class Key>
WARPHEAP_DEVICE lane_group group_by(lane_mask mask, Key key) {
  return group_of(simt::match_any(mask, key));
}

/// The lanes of `mask` in the same 32 lanes of the warp as the calling one, for records with a bit
/// for each of 32. In warps of 32 lanes that is `mask`.
WARPHEAP_DEVICE inline lane_mask in_our_32(lane_mask mask) {
  if constexpr (warp_lanes == 32) return mask;
  return mask & static_cast<lane_mask>(low_mask(32) << (simt::lane_id() & 32));
}

/// The leader's `value`. All lanes of the group call and hold the result; the others' `value` is
/// not read.
template <class T>
WARPHEAP_DEVICE T broadcast(lane_group const& group, T value) {
  return simt::shuffle(group.mask, value, group.leader);
}

/// Adds 1 to `counter` for every lane of the group, by one atomic of the leader.
///
/// returns to each lane of the group its own old value, as if the lanes had added one after the
///         other by rank. All lanes call.
/// order   relaxed: the numbers are distinct and say nothing about other memory.
template <class T>
WARPHEAP_DEVICE T aggregated_fetch_add(lane_group const& group, T& counter) {
  T first = 0;
  if (group.leads) first = atomic_ref<T>{counter}.fetch_add(group.size, order::relaxed);
  return broadcast(group, first) + group.rank;
}

/// Adds 1 to each lane's `counter`, where lanes may hold different counters: those of `mask` with
/// one counter add together.
template <class T>
WARPHEAP_DEVICE T aggregated_fetch_add(lane_mask mask, T& counter) {
  return aggregated_fetch_add(group_by(mask, reinterpret_cast<u64>(&counter)), counter);
}

/// The union of the `bits` of each group in `active`, in the group's leader; what other lanes hold
/// means nothing.
///
/// active  lanes that call, all together, each with its group in it. They talk in one mask, in as
///          many turns as the largest group has lanes: collectives of many masks would be served
///          one after the other.
template <class Bits>
WARPHEAP_DEVICE Bits union_of_groups(lane_mask active, lane_group const& group, Bits bits) {
  if (group.mask == active) {
    if constexpr (sizeof(Bits) == sizeof(u32)) return simt::reduce_or(active, bits);
    else
      return Bits{simt::reduce_or(active, static_cast<u32>(bits >> 32))} << 32 |
             simt::reduce_or(active, static_cast<u32>(bits));
  }
  Bits all = bits;
  lane_mask rest = group.mask & (group.mask - 1);
  while (simt::ballot(active, rest != 0)) {
    Bits const other = simt::shuffle(active, bits, rest ? lowest_bit(rest) : simt::lane_id());
    all |= other;
    rest &= rest - 1;
  }
  return all;
}

}}  // namespace warpheap::WARPHEAP_BACKEND
