// SPDX-License-Identifier: Apache-2.0
#include "summary.hpp"

#include <algorithm>

#include "warpheap/util/bits.hpp"

namespace warpheap::tool {

namespace {

/// What lives while a trace goes on.
struct live_blocks {
  u64 blocks = 0, bytes = 0;

  void apply(call_trace const& trace, traced_call const& call) {
    if (call.kind == call_kind::reset) *this = {};
    if (call.ends_a_block()) {
      --blocks;
      bytes -= trace.calls[call.block].bytes;
    }
    if (call.makes()) {
      ++blocks;
      bytes += call.bytes;
    }
  }
};

}  // namespace

trace_summary summary_of(call_trace const& trace, replay_plan const& plan) {
  trace_summary made;
  live_blocks live;
  for (auto const& call : trace.calls) {
    ++made.calls_of.at(static_cast<u32>(call.kind));
    live.apply(trace, call);
    made.most_live_blocks = std::max(made.most_live_blocks, live.blocks);
    made.most_live_bytes = std::max(made.most_live_bytes, live.bytes);
    if (!call.is_call()) continue;
    ++made.calls;
    made.groups += call.first;
    made.refused += call.refused;
    if (!call.asks()) continue;
    made.asked_bytes += call.bytes;
    auto& octave = made.sizes.at(log2_floor(call.bytes));
    ++octave.calls;
    octave.bytes += call.bytes;
  }
  made.left_blocks = live.blocks;
  made.left_bytes = live.bytes;
  made.kernels = plan.kernels;
  made.rounds = plan.rounds.size();
  for (auto const& round : plan.rounds) made.thread_blocks = std::max<u64>(made.thread_blocks, round.thread_blocks);
  return made;
}

}  // namespace warpheap::tool
