// SPDX-License-Identifier: Apache-2.0
// The records of a trace in device memory, in the order of their tickets. It is full at some time;
// later records are counted and lost. So a trace is the beginning of what a program did, and can be
// replayed: every block that it frees was made in it. The end of it, as a ring would keep it, frees
// blocks of which nothing is known.
//
//   words: | tickets | 15 unused | calls | addresses | places |    three columns, `room` words each
//
//   trace.T1  a record of a new block has its ticket before the call returns the block's address.
//   trace.T2  a record of a free has its ticket before the upstream heap gets the block.
//   trace.T3  so the records of one address are, by ticket: made, freed, made, freed.
//   trace.T4  every record has one ticket, and a place below `room` is written by one lane.
//
// trace.T3 needs no order of memory beyond the heap's own where threads pass pointers on with
// synchronisation: additions to one counter are ordered as their threads are. A pointer that is
// passed on by a relaxed store relies on trace.T1 alone: a thread has waited for its ticket, by
// which it finds the place of its record, when it stores the pointer.
//
// Cost: one atomic on one address for each group of lanes, 1.3 billion a second on an H200, and 24
// bytes a call.
#pragma once

#include "../../sync/warp_aggregate.hpp"
#include "words.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// View of the records, by value.
class trace_log {
 public:
  /// Words of a log with room for this many records.
  WARPHEAP_HOST_DEVICE static constexpr u64 words_for(u64 room) { return header_words + 3 * room; }

  trace_log() = default;
  /// `words` are words_for(room) words, of which the tickets must be 0 at first.
  WARPHEAP_HOST_DEVICE trace_log(u64* words, u64 room) : words_{words}, room_{room} {}

  /// Adds a record for each lane that is here with the same log and kind. Returns its ticket.
  WARPHEAP_DEVICE u64 add(call_kind kind, u64 bytes, void const* block, u32 log2_alignment = 0) const {
    auto const group = group_by(simt::active_mask(), reinterpret_cast<u64>(words_) | static_cast<u32>(kind));
    u64 const ticket = aggregated_fetch_add(group, *words_);
    write(ticket, trace_parts::call_word(kind, group.leads, log2_alignment, bytes), block);
    return ticket;
  }

  WARPHEAP_HOST_DEVICE u64 room() const { return room_; }

 private:
  static constexpr u64 header_words = 16;  ///< the tickets have a line of the caches for themselves

  /// trace.T4: the host reads the words when all kernels have ended.
  WARPHEAP_DEVICE void write(u64 ticket, u64 call, void const* block) const {
    if (ticket >= room_) return;
    u64* const column = words_ + header_words + ticket;
    column[0] = call;
    column[room_] = reinterpret_cast<u64>(block);
    column[2 * room_] = trace_parts::place_word(simt::grid_id(), simt::thread_index(), simt::block_index());
  }

  u64* words_ = nullptr;
  u64 room_ = 0;
};

}}  // namespace warpheap::WARPHEAP_BACKEND
