// SPDX-License-Identifier: Apache-2.0
// What went wrong in a kernel, in words: the fault, the settings that replay it, and the last steps
// before it.
#pragma once

#include <string>

#include "../errors.hpp"
#include "execution.hpp"
#include "format_message.hpp"
#include "lane.hpp"

namespace warpheap::host {

/// A kernel cannot go on, or broke the contract of a collective. The message has the lanes, the
/// seed and the last steps.
struct schedule_error : backend_error {
  using backend_error::backend_error;
};

/// A lane called `trap(reason)`. The message has the reason, the thread block and the thread.
struct trap_error : backend_error {
  using backend_error::backend_error;
};

namespace detail {

/// One scheduling point, as the report of a failure shows it.
struct step_record {
  u64 step;
  u32 lane;  // its number, modulo 2^32
  operation what;
  bool stale;
  u64 address;  // or the mask of a collective
  u64 before;
  u64 after;
};

/// The last change of a word.
struct change_record {
  u64 address;  // 0 before the first
  u32 step;     // modulo 2^32, as is the lane's number
  u32 lane;
};

/// Thread blocks that started one behind the other.
struct blocks_started {
  grid const* of;
  u32 first_lane;
  u32 first_block;
  u32 blocks;
  u32 threads;
};

/// Looks at a word and leaves it as it is.
constexpr bool is_look(operation what) { return what == operation::load || what == operation::compare_exchange_failed; }
constexpr bool is_change(operation what) { return what < operation::fence && !is_look(what); }

constexpr char const* name_of(operation what) {
  constexpr char const* names[] = {
      "load",      "store",      "exchange",  "compare_exchange", "failed compare_exchange",
      "fetch_add", "fetch_min",  "fetch_max", "fetch_or",         "fetch_and",
      "fetch_xor", "full_fence", "ballot",    "match_any",        "match_any",
      "shuffle",   "reduce_or",  "sync_warp", "active_mask",      "sync_block",
      "pause"};
  return names[static_cast<u8>(what)];
}

constexpr char const* name_of(schedule_policy policy) {
  constexpr char const* names[] = {"round_robin", "random_walk", "priorities", "directed"};
  return names[static_cast<u8>(policy)];
}

constexpr char const* name_of(mask_policy policy) {
  constexpr char const* names[] = {"singleton", "random", "maximal", "mixed"};
  return names[static_cast<u8>(policy)];
}

inline std::string hexadecimal(u64 value, u32 least_digits = 1) {
  std::string text;
  for (; value || text.size() < least_digits; value >>= 4) text.insert(text.begin(), "0123456789abcdef"[value & 15]);
  return format_message({"0x", text});
}

/// Lanes of a mask as ranges: {0-3,7}.
inline std::string lanes_of(lane_mask mask) {
  std::string text = "{";
  for (u32 first = 0; first < warp_lanes; ++first) {
    if (!(mask >> first & 1)) continue;
    u32 last = first;
    while (last + 1 < warp_lanes && mask >> (last + 1) & 1) ++last;
    text += format_message({text.size() > 1 ? "," : "", first});
    if (last > first) text += format_message({last > first + 1 ? "-" : ",", last});
    first = last;
  }
  return text + "}";
}

/// The settings in words, appended to a std::string or a fixed_text.
template <class Text>
WARPHEAP_NO_TSAN void add_settings(Text& text, execution const& run) {
  if (run.mode == execution_mode::parallel) add_to(text, {"parallel mode"});
  else
    add_to(text, {"deterministic mode, seed ", run.seed, ", ", name_of(run.policy), ", active masks ",
                  name_of(run.masks), run.weak_memory ? ", weak memory" : ""});
  add_to(text, {", ", run.sm_count, " multiprocessors of ", run.blocks_per_sm, " thread blocks"});
  if (run.stack_bytes != default_stack_bytes) add_to(text, {", stacks of ", run.stack_bytes, " bytes"});
}

}  // namespace detail

/// The settings in words, enough to replay a run.
inline std::string describe(execution const& run) {
  std::string text;
  detail::add_settings(text, run);
  return text;
}

}  // namespace warpheap::host
