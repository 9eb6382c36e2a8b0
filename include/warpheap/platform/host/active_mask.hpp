// SPDX-License-Identifier: Apache-2.0
// active_mask() as an adversary: it promises only some of the lanes that are here with us, so it
// may leave out others that are here too.
//
// A lane parks with its call site: the return address, and the depth of its stack, because two
// callers may reach one address. The scheduler then takes a non-empty set of the lanes at one site,
// gives all of them that set as their mask, and lets them go on. It never waits for a lane that
// could come: when the warp has nothing else to run, or has run on for long enough, the parked
// lanes are released.
#pragma once

#include "collective.hpp"

namespace warpheap::host::detail {

WARPHEAP_NO_TSAN inline void release_together(worker& here, warp& group, lane_mask together) {
  group.at_active_mask &= ~together;
  for (lane_mask left = together; left; left &= left - 1) {
    auto& released = group.lanes[__builtin_ctzll(left)];
    released.value = together;
    here.wake(released);
  }
}

/// Lanes parked at the site of lane `id`.
WARPHEAP_NO_TSAN inline lane_mask lanes_at_site_of(warp const& group, u32 id) {
  auto const& first = group.lanes[id];
  lane_mask together = 0;
  for (lane_mask left = group.at_active_mask; left; left &= left - 1) {
    auto const& other = group.lanes[__builtin_ctzll(left)];
    if (other.site == first.site && other.depth == first.depth) together |= left & -left;
  }
  return together;
}

/// A non-empty part of `lanes`: half the time all, else each with a coin.
WARPHEAP_NO_TSAN inline lane_mask part_of(draws& choices, lane_mask lanes) {
  u64 const draw = choices.next(), coin = warp_lanes < 64 ? draw : choices.next();
  lane_mask const part = lanes & static_cast<lane_mask>(draw);
  return coin >> 63 || !part ? lanes : part;
}

/// Releases, at every site, all of the lanes or some of them: the warp has nothing else to run, or
/// ran for long.
WARPHEAP_NO_TSAN inline void release_active_masks(worker& here, warp& group) {
  group.parked_steps = 0;
  for (lane_mask rest = group.at_active_mask; rest;) {
    lane_mask const together = lanes_at_site_of(group, static_cast<u32>(__builtin_ctzll(rest)));
    rest &= ~together;
    release_together(here, group, here.masks() == mask_policy::random ? part_of(here.choices(), together) : together);
  }
}

/// `site` is where active_mask() was called, `frame` an address in its stack frame.
[[gnu::noinline]] WARPHEAP_NO_TSAN inline lane_mask park_for_mask(void const* site, void const* frame) {
  lane& self = this_lane();
  worker& here = *this_worker();
  warp& group = *self.group;
  if (here.deterministic()) {
    here.record(operation::active_mask, lane_bit(self.id), 0, 0);
    here.point();
  }
  if (here.masks() == mask_policy::singleton) return lane_bit(self.id);
  self.site = site;
  self.depth = static_cast<u64>(self.stack->top() - static_cast<u8 const*>(frame));
  self.state = lane_state::at_active_mask;
  self.waits_in = operation::active_mask;
  if (!group.at_active_mask) group.parked_steps = 0;
  group.at_active_mask |= lane_bit(self.id);
  if (here.masks() == mask_policy::random && here.choices().below(4) == 0) {
    release_together(here, group, part_of(here.choices(), lanes_at_site_of(group, self.id)));
  }
  here.park();
  here.note_result(self.value);
  return static_cast<lane_mask>(self.value);
}

}  // namespace warpheap::host::detail
