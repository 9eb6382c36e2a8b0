// SPDX-License-Identifier: Apache-2.0
// Where lanes of a warp or a thread block meet.
//
// A collective is a rendezvous with a slot (mask, kind) in its warp. Each lane deposits its value
// and parks; the last one computes every lane's result into its record, closes the slot and makes
// the others ready. So a fast lane may name the same mask again at once, and masks may overlap.
//
// Lanes that have returned are not waited for, nor lanes that the last warp of a thread block does
// not have: a collective is complete with the "non-exited threads named in mask", a barrier with
// "all non-exited threads in the block" (CUDA C++ Programming Guide, warp vote functions and
// compute capability 7.x, independent thread scheduling). `execution::refuses_returned_lanes` makes
// an error of both. A lane that neither comes nor returns is noticed when nothing can run.
#pragma once

#include "memory_model.hpp"
#include "report.hpp"

namespace warpheap::host::detail {

/// Says what is wrong with a mask: it lacks our own lane, or has a lane that returned or never
/// existed.
[[gnu::cold]] WARPHEAP_NO_TSAN inline std::string describe_bad_mask(lane const& self, operation kind, lane_mask mask) {
  lane_mask const missing = mask & ~self.group->existing, gone = mask & self.group->exited;
  std::string complaint = "a mask that lacks its own lane";
  if (mask >> self.id & 1) {
    auto const others = missing ? lanes_of(missing) : lanes_of(gone);
    complaint =
        format_message({"lanes ", others, missing ? ", which its warp does not have" : ", which have returned"});
  }
  return format_message({name_of(self), " calls ", name_of(kind), " with ", complaint, ": mask ", lanes_of(mask)});
}

[[gnu::cold]] WARPHEAP_NO_TSAN inline std::string describe_bad_source(lane const& reader, lane_mask mask) {
  u32 const source = reader.source;
  bool const is_named = source < warp_lanes && (mask >> source & 1) != 0;
  auto const fault = is_named ? ", which has returned or does not exist: mask " : ", which is not in the mask ";
  return format_message({name_of(reader), " shuffles from lane ", source, fault, lanes_of(mask)});
}

[[gnu::cold]] WARPHEAP_NO_TSAN inline std::string describe_lone_barrier(lane const& self, u32 returned) {
  return format_message({"divergent sync_block: ", name_of(self), " waits there after ", returned,
                         " threads of its thread block have returned"});
}

WARPHEAP_NO_TSAN inline rendezvous& slot_for(warp& group, operation kind, lane_mask mask, void const* site) {
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

WARPHEAP_NO_TSAN inline void compute_match(warp& group, lane_mask mask) {
  lane_mask rest = mask;
  while (rest) {
    u64 const key = group.lanes[__builtin_ctzll(rest)].value;
    lane_mask same = 0;
    for (lane_mask left = rest; left; left &= left - 1) {
      if (group.lanes[__builtin_ctzll(left)].value == key) same |= left & -left;
    }
    for (lane_mask left = same; left; left &= left - 1) group.lanes[__builtin_ctzll(left)].value = same;
    rest &= ~same;
  }
}

WARPHEAP_NO_TSAN inline void compute_shuffle(worker& here, warp& group, rendezvous const& met) {
  lane_mask const present = met.arrived;
  u64 deposited[warp_lanes];
  for (lane_mask left = present; left; left &= left - 1)
    deposited[__builtin_ctzll(left)] = group.lanes[__builtin_ctzll(left)].value;
  for (lane_mask left = present; left; left &= left - 1) {
    auto& reader = group.lanes[__builtin_ctzll(left)];
    if (reader.source >= warp_lanes || !(present >> reader.source & 1)) [[unlikely]] {
      here.reject(describe_bad_source(reader, met.mask));
    }
    reader.value = deposited[reader.source];
  }
}

/// Ballot and bitwise or: one result for all lanes.
WARPHEAP_NO_TSAN inline void compute_common(warp& group, lane_mask mask, bool ballot) {
  u64 common = 0;
  for (lane_mask left = mask; left; left &= left - 1) {
    u64 const value = group.lanes[__builtin_ctzll(left)].value;
    if (!ballot) common |= value;
    else if (value) common |= left & -left;
  }
  for (lane_mask left = mask; left; left &= left - 1) group.lanes[__builtin_ctzll(left)].value = common;
}

/// All have arrived that will: computes the results, closes the slot, makes those ready that wait.
WARPHEAP_NO_TSAN inline void complete(worker& here, warp& group, rendezvous& slot) {
  rendezvous const met = slot;
  if (met.sites_differ) here.count_mixed_sites();
  slot = group.meetings[--group.open];
  switch (met.kind) {
    case operation::match_any_u32:
    case operation::match_any_u64: compute_match(group, met.arrived); break;
    case operation::shuffle: compute_shuffle(here, group, met); break;
    case operation::sync_warp:
      if (here.model()) here.model()->join_warp(group, met.arrived);
      break;
    default: compute_common(group, met.arrived, met.kind == operation::ballot);
  }
  for (lane_mask left = met.arrived; left; left &= left - 1) {
    auto& present = group.lanes[__builtin_ctzll(left)];
    if (present.state == lane_state::at_collective) here.wake(present);
  }
}

/// Meets the other lanes of `mask` in a collective of `kind`; returns our result. `source` is for
/// shuffle.
[[gnu::noinline]] WARPHEAP_NO_TSAN inline u64 meet(operation kind, lane_mask mask, u64 value, u32 source) {
  lane& self = this_lane();
  worker& here = *this_worker();
  warp& group = *self.group;
  if (here.deterministic()) {
    here.record(kind, mask, value, 0);
    here.point();
  }
  bool const is_whole = group.present(mask) == mask || !here.refuses_returned_lanes();
  if (!(mask >> self.id & 1 && is_whole)) [[unlikely]]
    here.fail(describe_bad_mask(self, kind, mask));
  if (kind == operation::sync_warp) tsan_release(&group.meetings[__builtin_ctzll(mask)]);
  auto& slot = slot_for(group, kind, mask, __builtin_return_address(0));
  slot.arrived |= lane_bit(self.id);
  self.value = value;
  self.source = source;
  if (slot.arrived == group.present(mask)) {
    self.heard = here.steps();
    complete(here, group, slot);
  } else {
    self.state = lane_state::at_collective;
    self.waits_in = kind;
    self.mask = mask;
    here.park();
  }
  if (kind == operation::sync_warp) tsan_acquire(&group.meetings[__builtin_ctzll(mask)]);
  here.note_result(self.value);
  return self.value;
}

/// All threads have arrived that will: makes those ready that wait.
WARPHEAP_NO_TSAN inline void complete_barrier(worker& here, thread_block& block) {
  block.at_barrier = 0;
  if (here.model()) here.model()->join_block(block);
  for (u32 thread = 0; thread < block.of->shape.threads; ++thread)
    if (block.lanes[thread].state == lane_state::at_sync_block) here.wake(block.lanes[thread]);
}

/// Meets all threads of the thread block that have not returned.
[[gnu::noinline]] WARPHEAP_NO_TSAN inline void meet_block() {
  lane& self = this_lane();
  worker& here = *this_worker();
  auto& block = *self.block;
  if (here.deterministic()) {
    here.record(operation::sync_block, 0, 0, 0);
    here.point();
  }
  u32 const returned = block.of->shape.threads - block.live;
  if (returned != 0 && here.refuses_returned_lanes()) [[unlikely]]
    here.fail(describe_lone_barrier(self, returned));
  tsan_release(&block.at_barrier);
  if (++block.at_barrier < block.live) {
    self.state = lane_state::at_sync_block;
    self.waits_in = operation::sync_block;
    here.park();
  } else {
    self.heard = here.steps();
    complete_barrier(here, block);
  }
  tsan_acquire(&block.at_barrier);
  here.note_barrier();
}

/// A lane has returned: those that it leaves alone in a collective or barrier go on.
WARPHEAP_NO_TSAN inline void meet_without(worker& here, lane const& returned) {
  warp& group = *returned.group;
  for (u32 i = 0; i < group.open;) {
    auto& slot = group.meetings[i];
    if (slot.arrived == group.present(slot.mask)) complete(here, group, slot);
    else ++i;
  }
  auto& block = *returned.block;
  if (block.at_barrier != 0 && block.at_barrier == block.live) complete_barrier(here, block);
}

}  // namespace warpheap::host::detail
