// SPDX-License-Identifier: Apache-2.0
#include "plan.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>

namespace warpheap::tool {

namespace {

/// The records [first, end) of lanes that called together.
struct call_group {
  u64 first;
  u64 end;
};

class planner {
 public:
  explicit planner(call_trace const& trace) : trace_{trace}, slots_(trace.calls.size()) {
    plan_.calls.reserve(trace.calls.size());
  }

  replay_plan make() {
    for (u64 i = 0; i < trace_.calls.size();) {
      call_group const group{i, end_of_group(i)};
      if (call_at(i).is_call()) add(group);
      else add_mark(call_at(i).kind);
      i = group.end;
    }
    finish_round();
    return std::move(plan_);
  }

 private:
  traced_call const& call_at(u64 index) const { return trace_.calls[index]; }

  u64 end_of_group(u64 index) const {
    u64 end = index + 1;
    while (end < trace_.calls.size() && !call_at(end).first) ++end;
    return end;
  }

  void add_mark(call_kind kind) {
    finish_round();
    after_reset_ |= kind == call_kind::reset;
    plan_.kernels += kind == call_kind::kernel;
  }

  void add(call_group group) {
    if (waits_for_another_warp(group)) finish_round();  // replay.R1
    if (groups_.empty()) round_begins_ = group.first;
    auto const& call = call_at(group.first);
    groups_[call.thread_block][call.warp()].push_back(group);
  }

  bool waits_for_another_warp(call_group group) const {
    for (u64 i = group.first; i < group.end && !groups_.empty(); ++i) {
      auto const& call = call_at(i);
      if (!call.names_a_block() || call.block < round_begins_) continue;
      auto const& maker = call_at(call.block);
      if (maker.thread_block != call.thread_block || maker.warp() != call.warp()) return true;
    }
    return false;
  }

  void finish_round() {
    if (groups_.empty()) return;
    replay_round round{.first_warp = plan_.warps.size(),
                       .thread_blocks = static_cast<u32>(groups_.size()),
                       .after_reset = std::exchange(after_reset_, false)};
    for (auto const& [thread_block, warps] : groups_)
      round.warps_a_block = std::max(round.warps_a_block, warps.rbegin()->first + 1);
    plan_.warps.resize(plan_.warps.size() + u64{round.thread_blocks} * round.warps_a_block);
    u64 first_of_block = round.first_warp;
    for (auto const& [thread_block, warps] : groups_) {
      for (auto const& [warp, groups] : warps) plan_.warps[first_of_block + warp] = add_steps(groups);
      first_of_block += round.warps_a_block;
    }
    plan_.rounds.push_back(round);
    groups_.clear();
  }

  replay_warp add_steps(std::vector<call_group> const& groups) {
    replay_warp const warp{static_cast<u32>(plan_.steps.size()), static_cast<u32>(groups.size())};
    for (auto const& group : groups) {
      replay_step step{static_cast<u32>(plan_.calls.size()), 0};
      for (u64 i = group.first; i < group.end; ++i) {
        step.mask |= 1u << call_at(i).lane();
        add_call(i);
      }
      plan_.steps.push_back(step);
    }
    return warp;
  }

  void add_call(u64 index) {
    auto const& call = call_at(index);
    replay_call made{.bytes = call.bytes,
                     .kind = call.kind,
                     .log2_alignment = static_cast<u8>(call.log2_alignment),
                     .refused = call.refused};
    if (call.names_a_block()) {
      made.named = slots_[call.block];  // set: replay.R1
      made.old_bytes = call_at(call.block).bytes;
    }
    if (call.makes()) made.made = slots_[index] = plan_.blocks++;
    plan_.calls.push_back(made);
  }

  call_trace const& trace_;
  std::vector<u32> slots_;  ///< of the blocks that records made
  replay_plan plan_;
  /// of the round, by thread block and warp
  std::map<u32, std::map<u32, std::vector<call_group>>> groups_;
  u64 round_begins_ = 0;
  bool after_reset_ = false;
};

}  // namespace

replay_plan plan_of(call_trace const& trace) {
  if (trace.calls.size() > most_replayed_records)
    throw std::invalid_argument{"a trace of " + std::to_string(trace.calls.size()) + " records, and at most " +
                                std::to_string(most_replayed_records) + " can be replayed"};
  return planner{trace}.make();
}

}  // namespace warpheap::tool
