// SPDX-License-Identifier: Apache-2.0
// A trace as the host reads it: the calls of a program in the order in which they were recorded,
// with blocks in place of addresses. A block is named by the index of the call that made it.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "words.hpp"

namespace warpheap {

/// A call, or the beginning of a kernel, or a reset; those two have nothing but their kind.
struct traced_call {
  call_kind kind = call_kind::none;
  bool first = true;     ///< of the lanes that called together; the others of them follow
  bool refused = false;  ///< it returned nullptr
  u32 log2_alignment = 0;
  u32 thread = 0;  ///< in its thread block
  u32 thread_block = 0;
  u64 bytes = 0;  ///< asked for
  u64 block = 0;  ///< of free and realloc: the call that made it

  bool asks() const { return kind >= call_kind::malloc && kind <= call_kind::realloc; }
  bool makes() const { return asks() && !refused; }
  bool ends_a_block() const { return kind == call_kind::free || (kind == call_kind::realloc && !refused); }
  bool names_a_block() const { return kind == call_kind::free || kind == call_kind::realloc; }
  bool is_call() const { return asks() || kind == call_kind::free; }
  u32 warp() const { return thread / warp_lanes; }
  u32 lane() const { return thread % warp_lanes; }

  friend bool operator==(traced_call const&, traced_call const&) = default;
};

struct call_trace {
  std::string machine = {};  ///< the device
  u64 pool_bytes = 0;
  u64 lost = 0;             ///< records that found no room, or were not written
  u64 unmatched_frees = 0;  ///< frees of blocks that the trace does not have; they are left out
  /// blocks at whose address another was made, though no record frees them
  u64 unseen_frees = 0;
  std::vector<traced_call> calls = {};

  friend bool operator==(call_trace const&, call_trace const&) = default;
};

namespace trace_parts {

/// What is wrong with calls one after the other.
class call_checker {
 public:
  explicit call_checker(std::vector<traced_call> const& calls) : calls_{calls}, is_live_(calls.size()) {}

  std::string fault_of(size_t index) {
    auto const& call = calls_[index];
    if (call.kind < call_kind::malloc || call.kind > call_kind::reset) return "is of no known kind";
    if (!call.is_call()) return fault_of_mark(index);
    if (call.thread >= 1024) return "is of thread " + std::to_string(call.thread) + ", and there are 1024";
    if (call.bytes > most_bytes) return "asks for more than " + std::to_string(most_bytes) + " bytes";
    if (call.asks() && call.bytes == 0) return "asks for 0 bytes";
    if (call.log2_alignment > 47) return "is aligned to more than 2^47";
    if (call.first) group_begins_ = index;
    else if (!continues_group(index)) return "continues a group of lanes to which it cannot belong";
    if (call.names_a_block() && (call.block >= group_begins_ || !is_live_[call.block]))
      return "names block " + std::to_string(call.block) + ", which is not live then";
    if (call.ends_a_block()) is_live_[call.block] = false;
    is_live_[index] = call.makes();
    return {};
  }

 private:
  std::string fault_of_mark(size_t index) {
    if (calls_[index] != traced_call{.kind = calls_[index].kind}) return "has more than a mark has";
    if (calls_[index].kind == call_kind::reset) is_live_.assign(is_live_.size(), false);
    group_begins_ = index + 1;
    return {};
  }

  bool continues_group(size_t index) const {
    if (index == group_begins_) return false;
    auto const &call = calls_[index], &before = calls_[index - 1];
    return call.thread_block == before.thread_block && call.warp() == before.warp() && call.thread > before.thread;
  }

  std::vector<traced_call> const& calls_;
  std::vector<bool> is_live_;
  size_t group_begins_ = 0;
};

}  // namespace trace_parts

/// What is wrong with a trace: a call that no program can have made after those before it. Empty if
/// nothing is.
inline std::string fault_of(call_trace const& trace) {
  trace_parts::call_checker checker{trace.calls};
  for (size_t i = 0; i < trace.calls.size(); ++i)
    if (auto const fault = checker.fault_of(i); !fault.empty()) return "record " + std::to_string(i) + " " + fault;
  return {};
}

}  // namespace warpheap
