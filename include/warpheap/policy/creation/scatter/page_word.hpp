// A page's state in one 64-bit word, so that every change is one atomic operation.
//
//    63        48 47 46    32 31             0
//   |  version   |F |  units | field or count |
//
//   units    chunk size in units of 16 bytes. 0: a free page, which serves any size. Two values
//            above all sizes name the pages of a run: its first one, and its others
//   field    flat pages: a bit a chunk, set while it is owned. Hierarchical pages: how many chunks
//            are promised. First page of a run: how many pages it has
//   F        full: all chunks are taken, or the page is part of a run
//   version  how often the page got room: it became free, or it was full and is not any more
//
//   S1  the word changes by read-modify-writes alone.
//   S2  flat: a set bit is an owned chunk. Hierarchical: bits set in the fields <= count, since a
//       bit is set after its promise and cleared before the promise is taken back. So a thread that
//       was promised chunks finds them.
//   S3  units of pages with chunks change only 0 -> size, by the thread that takes the first chunks
//       in the same step, and size -> 0, by the thread that gives back the last ones in the same
//       step. So no chunk is ever taken of a page that is being set up or cleaned up. Pages of runs
//       go 0 -> inner -> run -> inner -> 0.
//   S4  a step that makes room raises the version in the same step.
#pragma once

#include "../../../platform/types.hpp"

namespace warpheap {

/// A value of the word; pure, so that every decision can be tested without threads.
struct page_word {
  u64 word = 0;

  static constexpr u32 units_shift = 32;
  static constexpr u32 units_bits = 15;
  static constexpr u64 units_mask = ((u64{1} << units_bits) - 1) << units_shift;
  static constexpr u64 full_bit = u64{1} << (units_shift + units_bits);
  static constexpr u64 version_unit = 2 * full_bit;
  static constexpr u64 version_mask = 0 - version_unit;
  static constexpr u32 run_units = 0x7fff;    ///< the first page of a run
  static constexpr u32 inner_units = 0x7ffe;  ///< its others

  WARPHEAP_HOST_DEVICE constexpr u32 low() const { return static_cast<u32>(word); }
  WARPHEAP_HOST_DEVICE constexpr u32 units() const { return static_cast<u32>((word & units_mask) >> units_shift); }
  WARPHEAP_HOST_DEVICE constexpr u64 version() const { return word / version_unit; }

  WARPHEAP_HOST_DEVICE constexpr bool is_full() const { return word & full_bit; }
  WARPHEAP_HOST_DEVICE constexpr bool is_free() const { return (word & units_mask) == 0; }
  WARPHEAP_HOST_DEVICE constexpr bool is_run() const { return units() == run_units; }
  WARPHEAP_HOST_DEVICE constexpr bool has_chunks() const { return units() - 1 < inner_units - 1; }

  /// This version with other contents.
  WARPHEAP_HOST_DEVICE constexpr page_word with(u32 units, u32 low, bool full) const {
    return {(word & version_mask) | (full ? full_bit : 0) | u64{units} << units_shift | low};
  }
  /// The next version, which says that there is room now.
  WARPHEAP_HOST_DEVICE constexpr page_word with_room() const { return {word + version_unit}; }
};

static_assert(page_word{}.is_free() && !page_word{}.has_chunks());
static_assert(page_word{}.with(page_word::inner_units, 0, true).units() == page_word::inner_units);
static_assert(!page_word{}.with(page_word::inner_units, 0, true).has_chunks() &&
              page_word{}.with(1, 0, true).has_chunks());
static_assert(page_word{~u64{0}}.with_room().version() == 0 && page_word{7}.with_room().version() == 1);

/// What a request needs of a page.
struct chunk_request {
  u32 units;       ///< of 16 bytes, at least 1
  u32 most_units;  ///< the largest chunk it may be given
  u32 alignment;   ///< units of a chunk are a multiple of it
  u32 capacity;    ///< of a page of chunks of `units`

  WARPHEAP_HOST_DEVICE constexpr bool suits(u32 chunk_units) const {
    return chunk_units >= units && chunk_units <= most_units && (chunk_units & (alignment - 1)) == 0;
  }
};

/// Chunks of one page that were taken together, all in one segment.
struct chunk_set {
  u32 page = 0;
  u32 layout = 0;  ///< units of the chunks | segment << 16
  u32 bits = 0;    ///< the chunks of the segment; 0: none

  WARPHEAP_HOST_DEVICE constexpr u32 units() const { return layout & 0xffff; }
  WARPHEAP_HOST_DEVICE constexpr u32 segment() const { return layout >> 16; }
};

}  // namespace warpheap
