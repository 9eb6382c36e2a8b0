// SPDX-License-Identifier: Apache-2.0
// What stands behind a report of AddressSanitizer, whose "thread T0" is the OS thread of all lanes
// and which keeps no stacks of poisoned memory: the lane that ran, and the lanes and calls that
// allocated and freed the block of a heap that was hit.
//
// A table has the last 32,768 blocks at most: a block takes the place of an earlier one whose
// address has the same hash. It has 12 MB, and each malloc and free walks its stack.
#pragma once

#include "report.hpp"

#if defined(__SANITIZE_ADDRESS__)

#include <unwind.h>

#include <cstring>
#include <mutex>

namespace warpheap::host::detail {

/// What one lane, or host code, did with a block.
struct block_event {
  bool by_lane;
  u32 thread_block, thread;
  u32 depth;
  u64 calls[20];

  /// By the caller, now.
  void note() {
    worker const* const here = this_worker();
    by_lane = here && here->runs_a_lane();
    thread_block = by_lane ? here->running().block->index : 0;
    thread = by_lane ? here->running().thread : 0;
    depth = 0;
    _Unwind_Backtrace(
        [](_Unwind_Context* frame, void* to) {
          auto& event = *static_cast<block_event*>(to);
          event.calls[event.depth++] = _Unwind_GetIP(frame) - 1;
          return event.depth < sizeof event.calls / sizeof event.calls[0] ? _URC_NO_REASON : _URC_END_OF_STACK;
        },
        this);
  }
};

struct block_record {
  u64 address, bytes;
  bool is_free;
  block_event allocated, freed;

  /// How far an access at `where` is from the block: 0 within it.
  u64 distance(u64 where) const {
    if (where < address) return address - where;
    return where < address + bytes ? 0 : where - (address + bytes) + 1;
  }
};

class block_records {
 public:
  static block_records& instance() {
    static block_records only;
    return only;
  }

  void note_allowed(void const* memory, u64 bytes) {
    std::lock_guard const lock{mutex_};
    u64 const address = reinterpret_cast<u64>(memory);
    auto& record = records_[place_of(address)];
    // else usable_size() makes more of it accessible
    bool const begins = live_[place_of(address)] != address;
    live_[place_of(address)] = address;
    record.address = address;
    record.bytes = bytes;
    record.is_free = false;
    if (begins) record.allocated.note();
  }

  void note_forbidden(void const* memory, u64 bytes) {
    std::lock_guard const lock{mutex_};
    u64 const address = reinterpret_cast<u64>(memory);
    if (bytes >= least_pool_bytes) forget_live(address, bytes);
    auto& record = records_[place_of(address)];
    if (record.address != address) return;
    live_[place_of(address)] = 0;
    record.is_free = true;
    record.freed.note();
  }

  /// The block nearest to an address, null if none is near.
  block_record const* find(u64 where) {
    std::unique_lock const lock{mutex_, std::try_to_lock};
    if (!lock) return nullptr;
    block_record const* nearest = nullptr;
    for (auto const& record : records_) {
      if (!record.address || record.distance(where) > furthest) continue;
      if (!nearest || record.distance(where) < nearest->distance(where)) nearest = &record;
    }
    return nearest;
  }

 private:
  static constexpr u32 places = 1 << 15;
  static constexpr u64 furthest = 256;
  // a range that large may be a pool which begins or is reset, with all blocks in it
  static constexpr u64 least_pool_bytes = 64 * 1024;

  static u64 place_of(u64 address) { return (address * 0x9e37'79b9'7f4a'7c15ull) >> 49; }

  void forget_live(u64 begin, u64 bytes) {
    for (auto& each : live_)
      if (each - begin < bytes) each = 0;
  }

  std::mutex mutex_;
  u64 live_[places];  // addresses of records that are not free
  block_record records_[places];
};

/// The callers of an event in the user's code, as far as there are lines of it.
inline void write_calls(block_event const& event) {
  for (u32 i = 0, written = 0; i < event.depth && written < 4; ++i) {
    char frames[2048] = {};
    __sanitizer_symbolize_pc(reinterpret_cast<void*>(event.calls[i]), "%S in %f", frames, sizeof frames - 1);
    // one text behind the other, of functions that were inlined
    for (char const* frame = frames; *frame; frame += std::strlen(frame) + 1) {
      if (std::strstr(frame, "include/warpheap/") || frame[0] == '<' || written == 4) continue;
      fixed_text text;
      add_to(text, {"    at ", frame, "\n"});
      text.write_to_standard_error();
      ++written;
    }
  }
}

inline void write_event(char const* what, block_event const& event) {
  fixed_text text;
  if (event.by_lane)
    add_to(text, {"  ", what, " by thread block ", event.thread_block, " thread ", event.thread, "\n"});
  else add_to(text, {"  ", what, " by the host\n"});
  text.write_to_standard_error();
  write_calls(event);
}

inline void write_block(u64 address) {
  auto const* const block = block_records::instance().find(address);
  if (!block) return;
  fixed_text text;
  u64 const distance = block->distance(address);
  if (distance == 0) add_to(text, {"  at byte ", address - block->address, " of"});
  else
    add_to(text,
           {"  ", distance, distance == 1 ? " byte " : " bytes ", address < block->address ? "before" : "behind"});
  add_to(text, {block->is_free ? " a freed block of " : " a block of ", block->bytes, " bytes\n"});
  text.write_to_standard_error();
  write_event("allocated", block->allocated);
  if (block->is_free) write_event("freed", block->freed);
}

/// Called by AddressSanitizer after its report, on the stack that made the error.
inline void on_asan_report(char const*) {
  worker const* const here = this_worker();
  if (!here || !here->runs_a_lane()) return;
  fixed_text text;
  add_to(text, {"warpheap: this was "});
  add_name(text, here->running());
  add_to(text, {"\n  "});
  add_settings(text, here->settings());
  add_to(text, {", step ", here->steps(), "\n"});
  text.write_to_standard_error();
  if (__asan_report_present()) write_block(reinterpret_cast<u64>(__asan_get_report_address()));
}

inline void note_allowed(void const* memory, size_t bytes) { block_records::instance().note_allowed(memory, bytes); }
inline void note_forbidden(void const* memory, size_t bytes) {
  block_records::instance().note_forbidden(memory, bytes);
}

inline void catch_asan_reports() { __asan_set_error_report_callback(on_asan_report); }

}  // namespace warpheap::host::detail

#else

namespace warpheap::host::detail {

inline void catch_asan_reports() {}

}  // namespace warpheap::host::detail

#endif
