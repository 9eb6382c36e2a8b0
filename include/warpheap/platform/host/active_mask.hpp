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

WARPHEAP_NO_TSAN inline void release_together(worker& here, warp& group, u32 together) {
  group.at_active_mask &= ~together;
  for (u32 left = together; left; left &= left - 1) {
    auto& released = group.lanes[__builtin_ctz(left)];
    released.value = together;
    here.wake(released);
  }
}

/// Lanes parked at the site of lane `id`.
WARPHEAP_NO_TSAN inline u32 lanes_at_site_of(warp const& group, u32 id) {
  auto const& first = group.lanes[id];
  u32 together = 0;
  for (u32 left = group.at_active_mask; left; left &= left - 1) {
    auto const& other = group.lanes[__builtin_ctz(left)];
    if (other.site == first.site && other.depth == first.depth) together |= left & -left;
  }
  return together;
}

/// A non-empty part of `lanes`: half the time all, else each with a coin.
WARPHEAP_NO_TSAN inline u32 part_of(draws& choices, u32 lanes) {
  u64 const draw = choices.next();
  u32 const part = lanes & static_cast<u32>(draw);
  return draw >> 63 || !part ? lanes : part;
}

/// Releases, at every site, all of the lanes or some of them: the warp has nothing else to run, or
/// ran for long.
WARPHEAP_NO_TSAN inline void release_active_masks(worker& here, warp& group) {
  group.parked_steps = 0;
  for (u32 rest = group.at_active_mask; rest;) {
    u32 const together = lanes_at_site_of(group, static_cast<u32>(__builtin_ctz(rest)));
    rest &= ~together;
    release_together(here, group, here.masks() == mask_policy::random ? part_of(here.choices(), together) : together);
  }
}

/// `site` is where active_mask() was called, `frame` an address in its stack frame.
[[gnu::noinline]] WARPHEAP_NO_TSAN inline u32 park_for_mask(void const* site, void const* frame) {
  lane& self = this_lane();
  worker& here = *this_worker();
  warp& group = *self.group;
  if (here.deterministic()) {
    here.record(operation::active_mask, 1u << self.id, 0, 0);
    here.point();
  }
  if (here.masks() == mask_policy::singleton) return 1u << self.id;
  self.site = site;
  self.depth = static_cast<u64>(self.stack->top() - static_cast<u8 const*>(frame));
  self.state = lane_state::at_active_mask;
  self.waits_in = operation::active_mask;
  if (!group.at_active_mask) group.parked_steps = 0;
  group.at_active_mask |= 1u << self.id;
  if (here.masks() == mask_policy::random && here.choices().below(4) == 0) {
    release_together(here, group, part_of(here.choices(), lanes_at_site_of(group, self.id)));
  }
  here.park();
  here.note_result(self.value);
  return static_cast<u32>(self.value);
}

}  // namespace warpheap::host::detail
