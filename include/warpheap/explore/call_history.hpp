// SPDX-License-Identifier: Apache-2.0
// The contract of malloc and free as a checker: what calls returned, held against what calls that
// run one after the other could have returned.
//
//   calls.H1  a block that was served is aligned, lies within the pool, and has at least the bytes
//       asked for.
//   calls.H2  it overlaps no block that was served before it and whose free has not begun.
//   calls.H3  nullptr is returned only if no suitable place stayed free during the whole call. A
//       place is a run of whole regions with no block in it, or a place for a block in a region of
//       the same class. A region has a class as long as some block of it lives. A block counts as
//       being there from the beginning of its malloc to the end of its free. Every other malloc of
//       that time may have held for itself what it asked for, whatever it got in the end: so that
//       many places more must have stayed free.
//
// Lanes of one OS thread record their calls in the order in which these begin and end, so a count
// of events is a clock.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "../platform/simt.hpp"

namespace warpheap::explore {

/// How an allocator divides its pool, as far as its promise about nullptr says so.
struct regions {
  u64 first = 0;  ///< address of the first region
  u64 bytes = 0;  ///< of a region; 0: there are none
  u64 count = 0;
  /// The class of blocks of this many bytes that share a region; -1 if they take whole regions.
  i64 (*class_of)(u64 bytes) = nullptr;
  /// Blocks of a class that a region holds.
  u64 (*capacity)(i64 size_class) = nullptr;
  /// Where there are no regions, and all calls are for one size: how many blocks the pool holds.
  /// 0: nullptr is never a fault.
  u64 places = 0;
};

class call_history {
 public:
  static constexpr u64 no_call = ~u64{0};

  call_history(u64 pool, u64 pool_bytes, u64 alignment) : pool_{pool}, pool_bytes_{pool_bytes}, alignment_{alignment} {}

  /// A call of malloc begins; returns its number.
  u64 begin_malloc(u64 lane, u64 bytes) {
    calls_.push_back({.lane = lane, .bytes = bytes, .begin = ++clock_});
    return calls_.size() - 1;
  }

  void end_malloc(u64 number, u64 address, u64 usable) {
    auto& made = calls_[number];
    made.end = ++clock_;
    made.address = address;
    made.usable = usable;
    if (address == 0) return;
    if (address % alignment_ != 0) fault("calls.H1: misaligned", made);
    if (address < pool_ || address + usable > pool_ + pool_bytes_) fault("calls.H1: not in the pool", made);
    if (usable < made.bytes) fault("calls.H1: too few bytes", made);
    auto const after = live_.lower_bound(address);
    bool const overlaps_next = after != live_.end() && after->first < address + usable;
    bool const overlaps_last =
        after != live_.begin() && std::prev(after)->first + calls_[std::prev(after)->second].usable > address;
    if (overlaps_next) fault("calls.H2: overlaps", made, &calls_[after->second]);
    if (overlaps_last) fault("calls.H2: overlaps", made, &calls_[std::prev(after)->second]);
    live_[address] = number;
  }

  /// A call of free begins; returns the number of the malloc that it ends. A block without an owner
  /// gives no_call.
  u64 begin_free(u64 address) {
    auto const found = live_.find(address);
    if (found == live_.end()) return no_call;
    u64 const number = found->second;
    calls_[number].free_begin = ++clock_;
    live_.erase(found);
    return number;
  }

  /// `number`: what begin_free() returned. By now another call may own the address.
  void end_free(u64 number) {
    if (number != no_call) calls_[number].free_end = ++clock_;
  }

  u64 live() const { return live_.size(); }
  u64 refused() const {
    u64 count = 0;
    for (auto const& each : calls_) count += each.end != 0 && each.address == 0;
    return count;
  }

  /// What is wrong with the calls so far, one fault a line. All have ended.
  std::string faults(regions const& divided) const {
    auto text = faults_;
    for (auto const& each : calls_)
      if (each.end != 0 && each.address == 0 && each.bytes != 0) text += fault_of_refusal(divided, each);
    return text;
  }

 private:
  static constexpr u64 never = ~u64{0};

  struct call {
    u64 lane;
    u64 bytes;
    u64 begin;
    u64 end = 0;
    u64 address = 0;
    u64 usable = 0;
    u64 free_begin = never;
    u64 free_end = never;

    u64 last_event() const { return address != 0 ? free_end : end; }
    bool is_beside(call const& other) const { return this != &other && begin < other.end && end > other.begin; }
    bool is_there_during(call const& other) const {
      return address != 0 && begin < other.end && free_end > other.begin;
    }
    bool is_live_throughout(call const& other) const {
      return address != 0 && end < other.begin && free_begin > other.end;
    }
  };

  std::string fault_of_refusal(regions const& divided, call const& refused) const {
    auto const place = divided.bytes != 0 ? free_place(divided, refused) : place_of_one_size(divided.places, refused);
    if (place.empty()) return {};
    auto text = described("calls.H3: refused", refused) + place + "\n";
    for (auto const& each : calls_)
      if (&each != &refused && each.begin < refused.end && each.last_event() > refused.begin)
        text += described("  beside it", each) + "\n";
    return text;
  }

  /// What a region held during a call.
  struct region_use {
    u64 blocks = 0;
    i64 size_class = -1;  ///< of a block that lives throughout
  };

  std::vector<region_use> regions_during(regions const& divided, call const& refused) const {
    std::vector<region_use> seen(divided.count);
    for (auto const& each : calls_) {
      if (!each.is_there_during(refused)) continue;
      u64 const first = (each.address - divided.first) / divided.bytes;
      u64 const last = (each.address + each.usable - 1 - divided.first) / divided.bytes;
      for (u64 i = first; i <= last; ++i) ++seen[i].blocks;
      if (each.is_live_throughout(refused)) seen[first].size_class = divided.class_of(each.bytes);
    }
    return seen;
  }

  /// The places that stayed free during `refused`, in words; empty if there are too few.
  std::string free_place(regions const& divided, call const& refused) const {
    u64 held = 0;  // regions that others may have held
    for (auto const& each : calls_)
      if (each.is_beside(refused)) held += regions_for(divided, each);
    auto const seen = regions_during(divided, refused);
    i64 const wanted = divided.class_of(refused.bytes);
    u64 const run = regions_for(divided, refused);
    u64 places = 0, free = 0, last = 0;
    for (u64 i = 0; i < divided.count; ++i) {
      bool const has_room = wanted >= 0 && seen[i].size_class == wanted && seen[i].blocks < divided.capacity(wanted);
      free = seen[i].blocks == 0 ? free + 1 : 0;
      if (!has_room && free != run) continue;
      ++places;
      last = i;
      free = 0;
    }
    if (places <= held) return {};
    return host::detail::format_message({", while ", places, " places stayed free, the last of them in region ", last,
                                         ", and others asked for ", held});
  }

  /// As free_place(), of a pool of `places` equal places: no more than one each can have been taken
  /// by the blocks that were there, and by the other calls of that time.
  std::string place_of_one_size(u64 places, call const& refused) const {
    u64 taken = 0;
    for (auto const& each : calls_) taken += each.is_beside(refused) || each.is_there_during(refused);
    if (taken >= places) return {};
    return host::detail::format_message({", while of ", places, " places at most ", taken, " were taken"});
  }

  static u64 regions_for(regions const& divided, call const& asked) {
    return divided.class_of(asked.bytes) >= 0 ? 1 : (asked.bytes + divided.bytes - 1) / divided.bytes;
  }

  void fault(char const* what, call const& made, call const* other = nullptr) {
    faults_ += described(what, made) + "\n";
    if (other) faults_ += described("  which is", *other) + "\n";
  }

  std::string described(char const* what, call const& made) const {
    using host::detail::format_message;
    auto text = format_message(
        {what, ": lane ", made.lane, " asked for ", made.bytes, " bytes in events ", made.begin, " to ", made.end});
    if (made.address == 0) return text + ", and got nullptr";
    text += format_message({", and got ", made.usable, " bytes at memory + ", made.address - pool_});
    if (made.free_begin != never)
      text += format_message({", freed in events ", made.free_begin, " to ", made.free_end});
    return text;
  }

  u64 pool_, pool_bytes_, alignment_;
  u64 clock_ = 0;
  std::vector<call> calls_;
  std::map<u64, u64> live_;  // by address: the call that was served there, until its free begins
  std::string faults_;
};

}  // namespace warpheap::explore
