// SPDX-License-Identifier: Apache-2.0
// A quiet heap of frames seen from the host: its metadata is copied once, then read by plain code.
#pragma once

#include "table.hpp"

#if !defined(__CUDACC_RTC__)

#include <string>
#include <vector>

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace ring_buffer_parts {

template <size_t FrameBytes>
class snapshot {
 public:
  explicit snapshot(table<FrameBytes> const& table) : table_{table}, words_(table.metadata_bytes() / 4) {
    backend::copy_bytes(words_.data(), table.metadata(), 4 * words_.size());
  }

  u64 available() const { return ring(ring_queue::available_word); }

  heap_statistics statistics() const {
    heap_statistics found{.pool_bytes = table_.pool_bytes(), .metadata_bytes = table_.metadata_bytes()};
    for (u64 word = 0; word < table_.owned_words(); ++word) found.live_blocks += popcount(owned(word));
    found.live_bytes = found.live_blocks * FrameBytes;
    found.double_frees = counted(count::double_frees);
    found.foreign_frees = counted(count::foreign_frees);
    found.failures = counted(count::failures);
    return found;
  }

  /// Calls visit(address, bytes) for every owned frame in address order.
  template <class Visitor>
  void for_each_live(Visitor visit) const {
    for (u32 frame = 0; frame < table_.frames(); ++frame)
      if (is_owned(frame)) visit(table_.address(frame), FrameBytes);
  }

  /// One line for every invariant that does not hold.
  invariant_report check_invariants() const {
    invariant_report report;
    u32 const pushes = ring(ring_queue::pushes_word), pops = ring(ring_queue::pops_word), queued = pushes - pops;
    if (available() != queued)
      report.push_back("ring_queue.Q1: " + std::to_string(available()) + " frames available, and in the ring " +
                       std::to_string(queued));
    if (queued > table_.frames()) report.push_back("ring_queue.Q3: more frames in the ring than there are");
    std::vector<bool> seen(table_.frames());
    u32 const count = table_.ring().slot_count();
    for (u32 i = 0; i < count; ++i)
      if (char const* const violated = fault_of_slot(pops + i, i < queued, seen))
        report.push_back(violated + (" in the slot of ticket " + std::to_string(pops + i)));
    for (u32 frame = 0; frame < table_.frames(); ++frame)
      if (!seen[frame] && !is_owned(frame))
        report.push_back("ring_buffer.F2: frame " + std::to_string(frame) + " is lost");
    return report;
  }

 private:
  /// What is wrong with a slot; notes the frame in it as seen.
  char const* fault_of_slot(u32 ticket, bool is_queued, std::vector<bool>& seen) const {
    u32 const held = ring(ring_queue::index_words + (ticket & (table_.ring().slot_count() - 1)));
    if ((held != 0) != is_queued) return held ? "ring_queue.Q5: a frame" : "ring_queue.Q5: no frame";
    if (held == 0) return nullptr;
    if (held > table_.frames()) return "ring_queue.Q5: no number of a frame";
    bool const is_there_twice = seen[held - 1];
    seen[held - 1] = true;
    if (is_there_twice) return "ring_queue.Q5: a frame that is in another slot too";
    return is_owned(held - 1) ? "ring_buffer.F2: an owned frame" : nullptr;
  }

  u32 ring(u64 word) const { return words_[table<FrameBytes>::count_bytes / 4 + word]; }
  u32 owned(u64 word) const { return words_[table<FrameBytes>::owned_offset(table_.frames()) / 4 + word]; }
  bool is_owned(u32 frame) const { return owned(frame / 32) >> (frame % 32) & 1; }
  u64 counted(count which) const {
    u32 const word = 2 * static_cast<u32>(which);
    return u64{words_[word + 1]} << 32 | words_[word];
  }

  table<FrameBytes> table_;
  std::vector<u32> words_;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::ring_buffer_parts

#endif
