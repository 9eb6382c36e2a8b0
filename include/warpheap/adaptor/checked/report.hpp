// SPDX-License-Identifier: Apache-2.0
// A found error: the device's record of it, and its description in one line, which device code
// builds for a trap and the host for a list of reports.
#pragma once

#include "../../util/number_text.hpp"
#include "../../util/source_site.hpp"
#include "config.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// A call by a thread of a kernel: its place in the source, and the thread.
struct recorded_call {
  source_site site;      ///< file and line
  u32 thread_block = 0;  ///< of the grid
  u32 thread = 0;        ///< of the thread block
};

/// The record of an error. `File` of the sites is a pointer that kernels can read.
struct recorded_error {
  /// Its kind.
  memory_error kind = memory_error::foreign_free;
  /// The operation that found it.
  found_in where = found_in::free;
  u64 address = 0;  ///< of the block; of what was freed, if that is no block
  u64 bytes = 0;    ///< of the block
  /// How far outside the block bytes were written; how many bytes of a freed block were written;
  /// the distance of an inner address from the block's start.
  u64 extent = 0;
  u64 first = 0;                  ///< the first byte that was written of a freed block
  bool reaches_end = false;       ///< the whole redzone was written, and perhaps more
  bool in_pool = false;           ///< whether a foreign address lies within the heap's memory
  bool knows_allocation = false;  ///< whether `allocated` is valid
  bool knows_free = false;        ///< whether `freed` is valid
  recorded_call allocated;        ///< the call that made the block
  recorded_call freed;            ///< the call that freed it
  recorded_call found;            ///< the call that found it; not valid in a check by the host
};

namespace checked_parts {

/// A line of text in a fixed array; what does not fit is left out.
class text_line {
 public:
  static constexpr u32 room = 768;

  WARPHEAP_HOST_DEVICE text_line& operator<<(char const* text) {
    for (; text && *text && length_ + 1 < room; ++text) text_[length_++] = *text;
    text_[length_] = 0;
    return *this;
  }
  WARPHEAP_HOST_DEVICE text_line& operator<<(integer_text const& number) {
    for (u32 i = 0; i < number.size() && length_ + 1 < room; ++i) text_[length_++] = number.data()[i];
    text_[length_] = 0;
    return *this;
  }
  WARPHEAP_HOST_DEVICE text_line& operator<<(u64 number) { return *this << integer_text{number}; }
  WARPHEAP_HOST_DEVICE text_line& address(u64 number) { return *this << "0x" << integer_text{number, 16}; }
  /// "1 byte", "2 bytes".
  WARPHEAP_HOST_DEVICE text_line& bytes(u64 number) { return *this << number << (number == 1 ? " byte" : " bytes"); }

  WARPHEAP_HOST_DEVICE char const* text() const { return text_; }

 private:
  char text_[room] = {};
  u32 length_ = 0;
};

WARPHEAP_HOST_DEVICE inline text_line& operator<<(text_line& line, source_site const& site) {
  if (!site.file) return line << " at an unknown place";
  line << (site.line ? " at " : " in ") << site.file;
  return site.line ? line << ":" << u64{site.line} : line;
}

WARPHEAP_HOST_DEVICE inline text_line& operator<<(text_line& line, recorded_call const& call) {
  return line << "by thread " << u64{call.thread} << " of thread block " << u64{call.thread_block} << call.site;
}

/// What happened to which bytes.
WARPHEAP_HOST_DEVICE inline void describe_damage(text_line& line, recorded_error const& error) {
  char const* const at_least = error.reaches_end ? "at least " : "";
  switch (error.kind) {
    case memory_error::overrun: (line << "overrun by " << at_least).bytes(error.extent) << " behind "; break;
    case memory_error::underrun: (line << "underrun by " << at_least).bytes(error.extent) << " before "; break;
    case memory_error::damaged_header: line << "the header was overwritten before "; break;
    case memory_error::use_after_free:
      (line << "use after free: ").bytes(error.extent) << " from byte " << error.first << " on were written of ";
      break;
    case memory_error::double_free: line << "double free of "; break;
    case memory_error::inner_free: (line << "free of an address ").bytes(error.extent) << " into "; break;
    case memory_error::foreign_free: line << "free of "; break;
  }
}

/// The whole error in one line.
WARPHEAP_HOST_DEVICE inline void describe(text_line& line, recorded_error const& error) {
  describe_damage(line, error);
  if (error.kind == memory_error::foreign_free)
    line.address(error.address) << (error.in_pool ? ", at which no block of this heap starts"
                                                  : ", which lies outside of this heap");
  else if (error.knows_allocation) (line << "a block of ").bytes(error.bytes) << " at ", line.address(error.address);
  else (line << "a block at ").address(error.address);
  line << ": ";
  if (error.knows_allocation) line << "allocated " << error.allocated << ", ";
  if (error.knows_free) line << "freed " << error.freed << ", ";
  switch (error.where) {
    case found_in::free:
      if (error.kind == memory_error::double_free) line << "freed again ";
      else line << (error.kind >= memory_error::inner_free ? "freed " : "found in free ");
      line << error.found;
      break;
    case found_in::quarantine: line << "found when it left the quarantine, in a call " << error.found; break;
    case found_in::check: line << "found by a check from the host"; break;
  }
}

}  // namespace checked_parts
}}  // namespace warpheap::WARPHEAP_BACKEND
