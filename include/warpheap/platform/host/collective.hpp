// SPDX-License-Identifier: Apache-2.0
// Where lanes of a warp or a thread block meet.
//
// A collective is a rendezvous with a slot (mask, kind) in its warp. Each lane deposits its value
// and parks; the last one computes every lane's result into its record, closes the slot and makes
// the others ready. So a fast lane may name the same mask again at once, and masks may overlap. A
// lane that never comes is noticed when it returns, or when nothing can run.
#pragma once

#include "memory_model.hpp"
#include "report.hpp"

namespace warpheap::host::detail {

/// Says what is wrong with a mask that cannot meet: it lacks our own lane, or has a lane that
/// returned or never existed.
[[gnu::cold]] WARPHEAP_NO_TSAN inline std::string describe_bad_mask(lane const& self, operation kind, u32 mask) {
  u32 const missing = mask & ~self.group->existing, gone = mask & self.group->exited;
  auto const complaint = !(mask >> self.id & 1) ? std::string{"a mask that lacks its own lane"}
                         : missing ? format_message({"lanes ", lanes_of(missing), ", which its warp does not have"})
                                   : format_message({"lanes ", lanes_of(gone), ", which have returned"});
  return format_message({name_of(self), " calls ", name_of(kind), " with ", complaint, ": mask ", lanes_of(mask)});
}

[[gnu::cold]] WARPHEAP_NO_TSAN inline std::string describe_bad_source(lane const& reader, u32 mask) {
  u32 const source = reader.source;
  return format_message(
      {name_of(reader), " shuffles from lane ", source, ", which is not in the mask ", lanes_of(mask)});
}

[[gnu::cold]] WARPHEAP_NO_TSAN inline std::string describe_lone_barrier(lane const& self, u32 returned) {
  return format_message({"divergent sync_block: ", name_of(self), " waits there after ", returned,
                         " threads of its thread block have returned"});
}

WARPHEAP_NO_TSAN inline rendezvous& slot_for(warp& group, operation kind, u32 mask, void const* site) {
  for (u32 i = 0; i < group.open; ++i) {
    auto& slot = group.meetings[i];
    if (slot.mask == mask && slot.kind == kind) {
      if (slot.site != site) slot.sites_differ = true;
      return slot;
    }
  }
  auto& opened = group.meetings[group.open++];
  opened.mask = mask;
  opened.arrived = 0;
  opened.kind = kind;
  opened.sites_differ = false;
  opened.site = site;
  return opened;
}

WARPHEAP_NO_TSAN inline void compute_match(warp& group, u32 mask) {
  u32 rest = mask;
  while (rest) {
    u64 const key = group.lanes[__builtin_ctz(rest)].value;
    u32 same = 0;
    for (u32 left = rest; left; left &= left - 1) {
      if (group.lanes[__builtin_ctz(left)].value == key) same |= left & -left;
    }
    for (u32 left = same; left; left &= left - 1) group.lanes[__builtin_ctz(left)].value = same;
    rest &= ~same;
  }
}

WARPHEAP_NO_TSAN inline void compute_shuffle(worker& here, warp& group, u32 mask) {
  u64 deposited[warp_lanes];
  for (u32 left = mask; left; left &= left - 1) deposited[__builtin_ctz(left)] = group.lanes[__builtin_ctz(left)].value;
  for (u32 left = mask; left; left &= left - 1) {
    auto& reader = group.lanes[__builtin_ctz(left)];
    if (reader.source >= warp_lanes || !(mask >> reader.source & 1)) [[unlikely]] {
      here.fail(describe_bad_source(reader, mask));
    }
    reader.value = deposited[reader.source];
  }
}

/// Ballot and bitwise or: one result for all lanes.
WARPHEAP_NO_TSAN inline void compute_common(warp& group, u32 mask, bool ballot) {
  u64 common = 0;
  for (u32 left = mask; left; left &= left - 1) {
    u64 const value = group.lanes[__builtin_ctz(left)].value;
    if (!ballot) common |= value;
    else if (value) common |= left & -left;
  }
  for (u32 left = mask; left; left &= left - 1) group.lanes[__builtin_ctz(left)].value = common;
}

/// All have arrived: computes the results, closes the slot, makes the others ready.
WARPHEAP_NO_TSAN inline void complete(worker& here, lane const& last, rendezvous& slot) {
  warp& group = *last.group;
  u32 const mask = slot.mask;
  auto const kind = slot.kind;
  if (slot.sites_differ) here.count_mixed_sites();
  slot = group.meetings[--group.open];
  switch (kind) {
    case operation::match_any_u32:
    case operation::match_any_u64: compute_match(group, mask); break;
    case operation::shuffle: compute_shuffle(here, group, mask); break;
    case operation::sync_warp:
      if (here.model()) here.model()->join_warp(group, mask);
      break;
    default: compute_common(group, mask, kind == operation::ballot);
  }
  for (u32 left = mask & ~(1u << last.id); left; left &= left - 1) here.wake(group.lanes[__builtin_ctz(left)]);
}

/// Meets the other lanes of `mask` in a collective of `kind`; returns our result. `source` is for
/// shuffle.
[[gnu::noinline]] WARPHEAP_NO_TSAN inline u64 meet(operation kind, u32 mask, u64 value, u32 source) {
  lane& self = this_lane();
  worker& here = *this_worker();
  warp& group = *self.group;
  if (here.deterministic()) {
    here.record(kind, mask, value, 0);
    here.point();
  }
  bool const can_meet = mask >> self.id & 1 && !(mask & (~group.existing | group.exited));
  if (!can_meet) [[unlikely]]
    here.fail(describe_bad_mask(self, kind, mask));
  if (kind == operation::sync_warp) tsan_release(&group.meetings[__builtin_ctz(mask)]);
  auto& slot = slot_for(group, kind, mask, __builtin_return_address(0));
  slot.arrived |= 1u << self.id;
  self.value = value;
  self.source = source;
  if (slot.arrived == mask) {
    self.heard = here.steps();
    complete(here, self, slot);
  } else {
    self.state = lane_state::at_collective;
    self.waits_in = kind;
    self.mask = mask;
    here.park();
  }
  if (kind == operation::sync_warp) tsan_acquire(&group.meetings[__builtin_ctz(mask)]);
  here.note_result(self.value);
  return self.value;
}

/// Meets all threads of the thread block.
[[gnu::noinline]] WARPHEAP_NO_TSAN inline void meet_block() {
  lane& self = this_lane();
  worker& here = *this_worker();
  auto& block = *self.block;
  if (here.deterministic()) {
    here.record(operation::sync_block, 0, 0, 0);
    here.point();
  }
  u32 const threads = block.of->shape.threads;
  if (block.live < threads) [[unlikely]] {
    here.fail(describe_lone_barrier(self, threads - block.live));
  }
  tsan_release(&block.at_barrier);
  if (++block.at_barrier < threads) {
    self.state = lane_state::at_sync_block;
    self.waits_in = operation::sync_block;
    here.park();
  } else {
    block.at_barrier = 0;
    self.heard = here.steps();
    if (here.model()) here.model()->join_block(block);
    for (u32 thread = 0; thread < threads; ++thread) {
      if (thread != self.thread) here.wake(block.lanes[thread]);
    }
  }
  tsan_acquire(&block.at_barrier);
}

}  // namespace warpheap::host::detail
