// SPDX-License-Identifier: Apache-2.0
// The words of a failure's report: the last steps, and which lanes wait for which.
#pragma once

#include "allocations.hpp"
#include "worker.hpp"

namespace warpheap::host::detail {

/// A lane in words, appended to a std::string or a fixed_text. Not instrumented: it reads records
/// that other lanes write.
template <class Text>
WARPHEAP_NO_TSAN void add_name(Text& text, lane const& named) {
  u32 const block = named.block->index, thread = named.thread, id = named.id, group = named.group->index;
  add_to(text, {"thread block ", block, " thread ", thread, " (warp ", group, " lane ", id, ")"});
}

inline std::string name_of(lane const& named) {
  std::string text;
  add_name(text, named);
  return text;
}

/// A lane that ran off the end of its stack, in words.
template <class Text>
WARPHEAP_NO_TSAN void add_overflow(Text& text, lane const& overflowed) {
  add_name(text, overflowed);
  add_to(text, {" overflowed its stack of ", overflowed.stack->bytes, " bytes: raise host::execution::stack_bytes"});
}

/// host.S2
[[gnu::noinline]] inline void worker::fail_overflow(lane const& overflowed) {
  std::string text;
  add_overflow(text, overflowed);
  reject(static_cast<std::string&&>(text));
}

inline std::string describe(step_record const& step) {
  auto const text = format_message(
      {"step ", step.step, ": thread block ", step.block, " thread ", step.thread, " ", name_of(step.what)});
  if (step.what == operation::fence || step.what == operation::pause) return text;
  if (step.what >= operation::ballot) return format_message({text, " mask ", hexadecimal(step.address, 8)});
  auto const place = describe_address(step.address), after = hexadecimal(step.after);
  auto const old = step.what == operation::store ? " (late)" : " (stale)", weak = step.stale ? old : "";
  if (step.what == operation::load) return format_message({text, " ", place, " = ", after, weak});
  return format_message({text, " ", place, ": ", hexadecimal(step.before), " -> ", after, weak});
}

inline std::string worker::explain(std::string const& fault) const {
  auto text = format_message({fault, "\n  ", describe(how_), ", step ", statistics_.steps});
  u64 shown = trace_count_ < how_.trace_steps ? trace_count_ : how_.trace_steps;
  for (; shown > 0; --shown) {
    step_record const step = trace_[(trace_count_ - shown) & trace_mask_];
    text += format_message({"\n    ", describe(step)});
  }
  return text;
}

/// On main_: ends the run.
[[gnu::noinline]] inline void worker::give_up(std::initializer_list<part> fault) const {
  throw schedule_error{explain(format_message(fault))};
}

/// Lanes of one warp that are parked in the same place.
inline std::string describe_wait(warp const& group, u32 lanes) {
  auto const& first = group.lanes[__builtin_ctz(lanes)];
  auto const text = format_message({"\n  thread block ", group.block->index, " warp ", group.index, " lanes ",
                                    lanes_of(lanes), " wait in ", name_of(first.waits_in)});
  if (first.state != lane_state::at_collective) return text;
  u32 arrived = 0;
  for (u32 i = 0; i < group.open; ++i) {
    if (group.meetings[i].mask == first.mask && group.meetings[i].kind == first.waits_in)
      arrived = group.meetings[i].arrived;
  }
  return format_message(
      {text, "(mask ", lanes_of(first.mask), ") for lanes ", lanes_of(group.present(first.mask) & ~arrived)});
}

inline bool same_wait(lane const& left, lane const& right) {
  return left.state == right.state && left.waits_in == right.waits_in &&
         (left.state != lane_state::at_collective || left.mask == right.mask);
}

/// What lanes wait for, a line for those of a warp that wait for the same.
struct waits_told {
  static constexpr u32 most_lines = 32;
  std::string lines;
  u32 count = 0;
  bool at_barrier = false, elsewhere = false;

  void tell(warp const& group) {
    for (u32 rest = group.existing & ~group.exited; rest != 0;) {
      auto const& first = group.lanes[__builtin_ctz(rest)];
      u32 alike = 0;
      for (u32 left = rest; left != 0; left &= left - 1)
        if (same_wait(first, group.lanes[__builtin_ctz(left)])) alike |= left & -left;
      (first.state == lane_state::at_sync_block ? at_barrier : elsewhere) = true;
      if (++count <= most_lines) lines += describe_wait(group, alike);
      rest &= ~alike;
    }
  }
};

inline std::string worker::deadlock_report() const {
  waits_told waits;
  for (u32 i = 0; i < place_count_; ++i) {
    auto const& block = places_[i];
    if (!block.of) continue;
    for (u32 w = 0; w * warp_lanes < block.of->shape.threads; ++w) waits.tell(block.warps[w]);
  }
  std::string text = "deadlock";
  if (waits.at_barrier && waits.elsewhere) text += ", with a divergent sync_block";
  text += ": no lane can run";
  if (u64 const waiting = work_->waiting_blocks())
    text += format_message({"; ", waiting, " thread blocks have not started"});
  text += waits.lines;
  if (waits.count > waits.most_lines)
    text += format_message({"\n  and ", waits.count - waits.most_lines, " more groups of lanes"});
  return text;
}

}  // namespace warpheap::host::detail
