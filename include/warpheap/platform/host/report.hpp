// SPDX-License-Identifier: Apache-2.0
// The words of a failure's report: the last steps, and which lanes wait for which.
#pragma once

#include <algorithm>

#include "allocations.hpp"
#include "call_site.hpp"
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

inline worker::place_of_lane worker::find(u32 lane) const {
  auto from = started_.rbegin();
  while (lane - from->first_lane >= from->blocks * from->threads && from + 1 != started_.rend()) ++from;
  u32 const offset = lane - from->first_lane;
  return {from->of, from->first_block + offset / from->threads, offset % from->threads};
}

inline std::string worker::describe_step(step_record const& step) const {
  auto const by = find(step.lane);
  auto const text =
      format_message({"step ", step.step, ": thread block ", by.block, " thread ", by.thread, " ", name_of(step.what)});
  if (step.what == operation::fence || step.what == operation::pause) return text;
  if (step.what == operation::sync_block) return text;
  if (step.what >= operation::ballot)
    return format_message({text, " mask ", hexadecimal(step.address, warp_lanes / 4)});
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
    text += format_message({"\n    ", describe_step(step)});
  }
  return text;
}

/// On main_: ends the run.
[[gnu::noinline]] inline void worker::give_up(std::initializer_list<part> fault) const {
  throw schedule_error{explain(format_message(fault))};
}

/// Lanes of one warp that are parked in the same place.
inline std::string describe_parked(warp const& group, lane_mask lanes) {
  auto const& first = group.lanes[__builtin_ctzll(lanes)];
  auto const text = format_message({"\n  thread block ", group.block->index, " warp ", group.index, " lanes ",
                                    lanes_of(lanes), " wait in ", name_of(first.waits_in)});
  if (first.state != lane_state::at_collective) return text;
  lane_mask arrived = 0;
  for (u32 i = 0; i < group.open; ++i) {
    if (group.meetings[i].mask == first.mask && group.meetings[i].kind == first.waits_in)
      arrived = group.meetings[i].arrived;
  }
  return format_message(
      {text, "(mask ", lanes_of(first.mask), ") for lanes ", lanes_of(group.present(first.mask) & ~arrived)});
}

WARPHEAP_NO_TSAN inline bool is_parked(lane const& asked) {
  return asked.state != lane_state::ready && asked.state != lane_state::paused;
}

inline bool same_wait(lane const& left, lane const& right) {
  if (is_parked(left) != is_parked(right)) return false;
  if (!is_parked(left)) {
    auto const &one = left.watched, &other = right.watched;
    u32 const kept = one.count < words_watched::most ? one.count : words_watched::most;
    return left.site == right.site && one.count == other.count &&
           std::equal(one.addresses, one.addresses + kept, other.addresses);
  }
  return left.state == right.state && left.waits_in == right.waits_in &&
         (left.state != lane_state::at_collective || left.mask == right.mask);
}

inline std::string worker::describe_maker(change_record const& made) const {
  auto const found = find(made.lane);
  auto const text =
      format_message({"left so at step ", made.step, " by thread block ", found.block, " thread ", found.thread});
  for (u32 i = 0; i < place_count_; ++i) {
    auto const& block = places_[i];
    if (block.of != found.of || block.index != found.block) continue;
    auto const& writer = block.lanes[found.thread];
    if (writer.state == lane_state::exited) break;
    return is_parked(writer) ? format_message({text, ", which waits in ", name_of(writer.waits_in)}) : text;
  }
  return text + ", which has returned";
}

/// What lanes wait for, one line for all lanes of a warp that wait for the same thing.
class waits_told {
 public:
  explicit waits_told(worker const& here) : here_{here} {}

  bool at_barrier = false, elsewhere = false;

  void tell(thread_block const& block) {
    for (u32 w = 0; block.of && w * warp_lanes < block.of->shape.threads; ++w) tell(block.warps[w]);
  }

  std::string lines() const {
    if (count_ <= most_lines) return lines_;
    return format_message({lines_, "\n  and ", count_ - most_lines, " more groups of lanes"});
  }

 private:
  static constexpr u32 most_lines = 32, most_words = 3;

  void tell(warp const& group) {
    for (lane_mask rest = group.existing & ~group.exited; rest != 0;) {
      auto const& first = group.lanes[__builtin_ctzll(rest)];
      lane_mask alike = 0;
      for (lane_mask left = rest; left != 0; left &= left - 1)
        if (same_wait(first, group.lanes[__builtin_ctzll(left)])) alike |= left & -left;
      (first.state == lane_state::at_sync_block ? at_barrier : elsewhere) = true;
      if (++count_ <= most_lines)
        lines_ += is_parked(first) ? describe_parked(group, alike) : describe_looks(group, alike);
      rest &= ~alike;
    }
  }

  /// Lanes of one warp that look at the same words at one place.
  std::string describe_looks(warp const& group, lane_mask lanes) {
    auto const& first = group.lanes[__builtin_ctzll(lanes)];
    auto text =
        format_message({"\n  thread block ", group.block->index, " warp ", group.index, " lanes ", lanes_of(lanes)});
    if (first.watched.count == 0) return text + " run between collectives";
    if (first.site != site_) place_ = describe_call_site(site_ = first.site);
    text += " look again and again at ";
    for (u32 i = 0; i < first.watched.count && i < most_words; ++i) {
      u64 const address = first.watched.addresses[i];
      auto const& last = here_.last_change_of(address);
      text += format_message({i == 0 ? "" : "; at ", describe_address(address)});
      if (first.watched.count == 1) text += format_message({" = ", hexadecimal(first.observed)});
      if (last.address == address) text += ", " + here_.describe_maker(last);
    }
    if (first.watched.count > most_words)
      text += format_message({"; and at ", first.watched.count - most_words, " more words"});
    return format_message({text, "; at ", place_});
  }

  worker const& here_;
  std::string lines_, place_;
  void const* site_ = nullptr;
  u32 count_ = 0;
};

inline std::string worker::deadlock_report() const {
  waits_told waits{*this};
  for (u32 i = 0; i < place_count_; ++i) waits.tell(places_[i]);
  return format_message({"deadlock", waits.at_barrier && waits.elsewhere ? ", with a divergent sync_block" : "",
                         ": no lane can run", blocks_not_started(), waits.lines()});
}

/// The steps before a hang say nothing that this does not, so they are not shown.
inline std::string worker::hang_report() {
  trace_count_ = 0;
  waits_told waits{*this};
  for (u32 i = 0; i < place_count_; ++i) waits.tell(places_[i]);
  return format_message({"hang: no lane has changed a word or returned for long, and those that run wait for a change",
                         workers_ > 1 ? ", on this OS thread and on others" : "", blocks_not_started(), waits.lines()});
}

inline std::string worker::blocks_not_started() const {
  u64 const waiting = work_->waiting_blocks();
  return waiting ? format_message({"; ", waiting, " thread blocks have not started"}) : "";
}

}  // namespace warpheap::host::detail
