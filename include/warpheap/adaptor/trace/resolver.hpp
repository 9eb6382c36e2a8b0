// SPDX-License-Identifier: Apache-2.0
// From records with addresses to calls with blocks: walks the records in the order of their
// tickets, and knows which block is live at each address.
//
// A kernel begins at the first record of its grid. Kernels that ran at the same time are cut where
// the later one's first record is: what the earlier one did after that counts as the later one's.
#pragma once

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "calls.hpp"

namespace warpheap::trace_parts {

class resolver {
 public:
  /// Takes the next record.
  void add(log_entry const& entry) {
    u64 const place = places_++;
    group_ += entry.first;
    switch (entry.kind) {
      case call_kind::malloc:
      case call_kind::calloc:
      case call_kind::aligned_alloc: return make(entry, entry.kind, entry.bytes);
      case call_kind::realloc_begins: return begin_realloc(place, entry);
      case call_kind::realloc: return end_realloc(entry);
      case call_kind::free: return end(entry);
      case call_kind::reset:
        live_.clear();
        begun_.clear();
        return push({.kind = call_kind::reset});
      default: ++trace_.lost; ++group_;  // it may have been the first of its group
    }
  }

  /// The calls so far.
  call_trace take() { return std::move(trace_); }

 private:
  /// A realloc of which one record came.
  struct begun_realloc {
    u64 address;
    std::optional<u64> block;  ///< none: the trace does not have it
    u64 bytes;
  };

  void push(traced_call call) { trace_.calls.push_back(call); }

  void push(log_entry const& entry, traced_call call) {
    if (grids_.insert(entry.grid).second) push({.kind = call_kind::kernel});
    call.first = group_ != group_of_last_;
    group_of_last_ = group_;
    call.thread = entry.thread;
    call.thread_block = entry.thread_block;
    push(call);
  }

  void make(log_entry const& entry, call_kind kind, u64 bytes, u64 block = 0) {
    bool const refused = entry.address == 0;
    push(entry,
         {.kind = kind, .refused = refused, .log2_alignment = entry.log2_alignment, .bytes = bytes, .block = block});
    if (refused) return;
    u64 const made = trace_.calls.size() - 1;
    bool const is_new = live_.insert_or_assign(entry.address, made).second;
    trace_.unseen_frees += !is_new;
  }

  /// The block at an address, which is live no more.
  std::optional<u64> take_live(u64 address) {
    auto const at = live_.find(address);
    if (at == live_.end()) return std::nullopt;
    u64 const block = at->second;
    live_.erase(at);
    return block;
  }

  void end(log_entry const& entry) {
    auto const block = take_live(entry.address);
    if (block) push(entry, {.kind = call_kind::free, .block = *block});
    trace_.unmatched_frees += !block;
  }

  void begin_realloc(u64 place, log_entry const& entry) {
    begun_[place] = {entry.address, take_live(entry.address), entry.bytes};
  }

  void end_realloc(log_entry const& entry) {
    auto const at = begun_.find(entry.bytes);
    if (at == begun_.end()) {
      ++trace_.lost;
      return;
    }
    auto const [address, block, bytes] = at->second;
    begun_.erase(at);
    if (block) make(entry, call_kind::realloc, bytes, *block);
    else make(entry, call_kind::malloc, bytes);
    trace_.unmatched_frees += !block;
    if (block && entry.address == 0) live_[address] = *block;
  }

  call_trace trace_;
  std::unordered_map<u64, u64> live_;             ///< by address
  std::unordered_map<u64, begun_realloc> begun_;  ///< by the place of the first record
  std::unordered_set<u32> grids_;                 ///< that have had a record
  u64 places_ = 0;
  u64 group_ = 0;
  u64 group_of_last_ = ~u64{0};
};

}  // namespace warpheap::trace_parts
