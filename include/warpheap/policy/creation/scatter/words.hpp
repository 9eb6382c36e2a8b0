// SPDX-License-Identifier: Apache-2.0
// The packed words: a page's state, how many pages of a region are full, and the rounds in which
// runs are asked for.
#pragma once

#include "../../../platform/types.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace scatter_parts {

/// Whether all of a page is taken.
enum class page_fill : bool { has_room, full };

/// A page's state in one 64-bit word, so that every change is one atomic operation.
///
///    63        48 47 46    32 31             0
///   |  version   |F |  units | field or count |
///
///   units    chunk size in units of 16 bytes. 0: a free page, which serves any size. Two values
///            above all sizes name the pages of a run: its first one, and its others
///   field    flat pages: a bit a chunk, set while it is owned. Hierarchical pages: how many chunks
///            are promised. First page of a run: how many pages it has
///   F        full: all chunks are taken, or the page is part of a run
///   version  how often the page got room: it became free, or it was full and is not any more
///
///   scatter.S1  the word changes by read-modify-writes alone.
///   scatter.S2  flat: a set bit is an owned chunk. Hierarchical: bits set in the fields <= count,
///       since a bit is set after its promise and cleared before the promise is taken back. So a
///       thread that was promised chunks finds them.
///   scatter.S3  units of pages with chunks change only 0 -> size, by the thread that takes the
///       first chunks in the same step, and size -> 0, by the thread that gives back the last ones
///       in the same step. So no chunk is ever taken of a page that is being set up or cleaned up.
///       Pages of runs go 0 -> inner -> run -> inner -> 0.
///   scatter.S4  a step that makes room raises the version in the same step.
///
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
  WARPHEAP_HOST_DEVICE constexpr page_word with(u32 units, u32 low, page_fill fill) const {
    return {(word & version_mask) | (fill == page_fill::full ? full_bit : 0) | u64{units} << units_shift | low};
  }
  /// The next version, which says that there is room now.
  WARPHEAP_HOST_DEVICE constexpr page_word with_room() const { return {word + version_unit}; }
};

static_assert(page_word{}.is_free() && !page_word{}.has_chunks());
static_assert(page_word{}.with(page_word::inner_units, 0, page_fill::full).units() == page_word::inner_units);
static_assert(!page_word{}.with(page_word::inner_units, 0, page_fill::full).has_chunks() &&
              page_word{}.with(1, 0, page_fill::full).has_chunks());
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

/// How many parts of something are full: pages of a region, regions of an access block.
///
///    63         32 31        0
///   |  withdrawals |  count   |
///
/// The word is one sum, withdrawals * 2^32 + count. Its count may be below zero for a moment.
///
///   scatter.F1  count <= parts that are full, at every instant: a part is counted after it became
///       full, and withdrawn before it gets room. So a thread that finds all parts counted knows
///       that all are full, and that no thread is about to change it.
///   scatter.F2  the word never comes back to an old value after a withdrawal, so two equal looks
///       have none between them.
struct fill_count {
  u64 word = 0;

  static constexpr u64 withdrawal = u64{1} << 32;

  WARPHEAP_HOST_DEVICE constexpr i32 count() const { return static_cast<i32>(static_cast<u32>(word)); }
  WARPHEAP_HOST_DEVICE constexpr bool counts_all(u32 parts) const { return static_cast<u32>(word) == parts; }
  /// What withdrawing `parts` adds to the word.
  WARPHEAP_HOST_DEVICE static constexpr u64 withdrawing(u32 parts) { return withdrawal - parts; }
};

static_assert(fill_count{fill_count::withdrawing(1)}.count() == -1 &&
              fill_count{fill_count::withdrawing(1) + 1}.count() == 0);
static_assert(fill_count{16 + fill_count::withdrawing(1)}.word == fill_count::withdrawal + 15);

/// What the callers of one round ask for.
struct run_request {
  u32 length = 0;
  u32 alignment = 0;

  WARPHEAP_HOST_DEVICE constexpr bool operator==(run_request const& other) const {
    return length == other.length && alignment == other.alignment;
  }
};

/// A round: requests for runs that one search answers. Callers that want runs of one length join
/// the open round by an addition, which tells each caller its place. The searcher closes the round,
/// opens the next one, lists a run for each place, and publishes how many runs there are. So every
/// run of a list belongs to a caller that waits for it, and none is left over.
///
///    63    60 59       54 53        24 23       0
///   | number |  alignment |   length  |   asked  |     the open round
///
///   number     of the round, modulo 16: the next round is not answered before all callers of this
///              one have taken up their runs
///   alignment  of the first page in bytes, its logarithm; 0: any page will do
///   length     pages of each run
///   asked      runs that are wanted; a caller's place is the value that it found here
///
/// A value of the open round's word; pure, as page_word.
struct run_round {
  u64 word = 0;

  static constexpr u32 asked_bits = 24, length_bits = 30, alignment_bits = 6;
  static constexpr u32 length_shift = asked_bits, alignment_shift = length_shift + length_bits;
  static constexpr u32 number_shift = alignment_shift + alignment_bits, numbers = 16;

  WARPHEAP_HOST_DEVICE constexpr u32 number() const { return static_cast<u32>(word >> number_shift); }
  WARPHEAP_HOST_DEVICE constexpr u32 asked() const { return static_cast<u32>(word) & ((1u << asked_bits) - 1); }
  WARPHEAP_HOST_DEVICE constexpr run_request request() const {
    return {static_cast<u32>(word >> length_shift) & ((1u << length_bits) - 1),
            static_cast<u32>(word >> alignment_shift) & ((1u << alignment_bits) - 1)};
  }

  /// Round `number` modulo 16, which no thread has joined yet.
  WARPHEAP_HOST_DEVICE static constexpr run_round of(u32 number, run_request const& request) {
    return {u64{number} << number_shift | u64{request.alignment} << alignment_shift |
            u64{request.length} << length_shift};
  }
};

/// The answer to the last round that a search served.
///
///    63      36 35        4 3      0
///   |    0     |  listed   |  next  |
///
///   listed  runs that are listed
///   next    number of the first round that is not answered, modulo 16
struct run_answer {
  u64 word = 0;

  WARPHEAP_HOST_DEVICE constexpr u32 listed() const { return static_cast<u32>(word >> 4); }
  /// Whether this is the answer to round `number`; callers that wait for it see no later one.
  WARPHEAP_HOST_DEVICE constexpr bool is_of(u32 number) const { return (word + run_round::numbers - number) % 16 == 1; }

  WARPHEAP_HOST_DEVICE static constexpr run_answer of(u32 number, u32 listed) {
    return {u64{listed} << 4 | (number + 1) % run_round::numbers};
  }
};

static_assert(run_round::of(17, {2, 5}).number() == 1 && run_round::of(17, {2, 5}).request() == run_request{2, 5});
static_assert(run_round{run_round::of(3, {7, 0}).word + 32}.asked() == 32);
static_assert(!run_answer{}.is_of(0) && run_answer::of(0, 9).is_of(0) && !run_answer::of(0, 9).is_of(1));
static_assert(run_answer::of(15, 9).is_of(15) && run_answer::of(15, 9).listed() == 9);

}}}  // namespace warpheap::WARPHEAP_BACKEND::scatter_parts
