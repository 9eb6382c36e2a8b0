// SPDX-License-Identifier: Apache-2.0
// The units of a rw_malloc: where they and their words lie, and what is known of a block.
//
//   pool       unit 0 | unit 1 | ...   starts at a multiple of 4 KiB (unit_pool.hpp)
//   metadata   counts, steps, pass     walk_table.hpp
//              words                   8 bytes for 32 units: which are taken (words.hpp)
//              marks                   8 bytes for 32 units: where blocks start and end
//              groups                  8 bytes for group_words words: their runs
#pragma once

#include "../shared/walk_table.hpp"
#include "config.hpp"
#include "runs.hpp"
#include "words.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace rw_malloc_parts {

/// How many sizes a search may be for.
inline constexpr u32 size_classes = 35;

/// View of a heap of units; 16 bytes, trivially copyable, owns nothing.
template <creation::rw_malloc_config Config>
class table : public creation::walk_table<Config.unit_bytes, u64, 32, size_classes> {
  using base_type = creation::walk_table<Config.unit_bytes, u64, 32, size_classes>;
  using base_type::words_at;

 public:
  using base_type::base_type, base_type::none, base_type::look_at, base_type::words, base_type::pool;
  static constexpr u64 max_units = u64{1} << 34;
  static constexpr size_t unit_bytes = Config.unit_bytes;
  static constexpr u64 group_units = 32 * Config.group_words;

  WARPHEAP_HOST_DEVICE u64 groups() const { return (words() + Config.group_words - 1) / Config.group_words; }
  /// Units of a group, including those that do not exist (walk.K3).
  WARPHEAP_HOST_DEVICE u32 units_of_group(u64 group) const {
    u64 const words_from = words() - group * Config.group_words;
    return 32 * static_cast<u32>(words_from < Config.group_words ? words_from : Config.group_words);
  }
  WARPHEAP_HOST_DEVICE u64 metadata_bytes() const { return base_type::words_offset + 16 * u64{words()} + 8 * groups(); }

  /// The wish for a block of `units` units at a multiple of `alignment` bytes, a power of two.
  WARPHEAP_HOST_DEVICE run_wish wish(u64 units, size_t alignment) const {
    if (alignment <= unit_bytes) return run_wish{units};
    u64 const align = alignment / unit_bytes;
    return run_wish{units, align, reinterpret_cast<u64>(pool()) / unit_bytes & (align - 1)};
  }

  WARPHEAP_DEVICE atomic_ref<u64> marks(u32 index) const { return atomic_ref<u64>{words_at()[words() + index]}; }
  WARPHEAP_DEVICE atomic_ref<u64> group(u64 index) const {
    return atomic_ref<u64>{words_at()[2 * u64{words()} + index]};
  }

  /// Whether a live block ends with the unit (rw.U1): a hint.
  WARPHEAP_DEVICE bool has_end(u64 unit) const {
    return unit_marks{marks(static_cast<u32>(unit / 32)).load(order::relaxed)}.has_end(unit);
  }

  /// Marks a block whose units are the caller's (rw.U1); returns `unit` once its start mark is set.
  template <class Faults>
  WARPHEAP_DEVICE u64 own(u64 unit, u64 units) const {
    u64 const last = Faults::last_of(unit, units);
    u32 const first_word = static_cast<u32>(unit / 32), last_word = static_cast<u32>(last / 32);
    u64 const start_bit = unit_marks::start_bit(unit), end_bit = unit_marks::end_bit(last);
    // relaxed, both: the units were acquired, and their old owner cleared its marks before. One
    // operation sets both marks in one word; else the start mark hands the end mark over.
    u64 const before = first_word == last_word
                           ? marks(first_word).fetch_or(start_bit | end_bit, order::relaxed)
                           : Faults::mark_ends(marks(first_word), start_bit, marks(last_word), end_bit);
    // The mark is never set already (rw.U1). The test makes the address depend on the atomic: a GPU
    // does not wait for an atomic whose result it does not need, and an address that was passed on
    // by a relaxed word came before its mark.
    return before & start_bit ? none : unit;
  }

  /// The block that starts at `unit`. `seen` are its first word's marks, its start mark among them.
  template <class Faults>
  WARPHEAP_DEVICE unit_run run_at(u64 unit, unit_marks seen) const {
    u32 const first = static_cast<u32>(unit / 32);
    u32 const ends = seen.ends() & ~low_mask32(unit % 32);
    if (ends != 0) return unit_run{unit, u64{32} * first + lowest_bit(ends) + 1 - unit};
    Faults::receive_ends(marks(first));
    // relaxed: received; in a block that the caller may use or free no other thread changes them.
    u32 const extent = unit_word::extent(look_at(first + 1)), ends_in = first + (extent != 0 ? extent - 1 : 1);
    // the bounds are for a block that its holder is freeing just now
    u32 const last = ends_in < words() ? ends_in : words() - 1;
    u32 const last_ends = unit_marks{marks(last).load(order::relaxed)}.ends();
    return unit_run{unit, u64{32} * last + (last_ends != 0 ? lowest_bit(last_ends) + 1 : 0) - unit};
  }

  /// The live block that starts at `memory`; of 0 units if none does.
  template <class Faults>
  WARPHEAP_DEVICE unit_run block_at(void const* memory) const {
    u64 const unit = this->number_of(memory);
    if (unit == none) return unit_run{0, 0};
    // relaxed, by a read-modify-write: the caller may have the address without any memory order,
    // and a load might read the marks of an older block there. run_at() receives the end.
    unit_marks const seen{marks(static_cast<u32>(unit / 32)).fetch_or(0, order::relaxed)};
    return seen.has_start(unit) ? run_at<Faults>(unit, seen) : unit_run{0, 0};
  }

  /// Ends the life of the block at `unit` and returns it; of 0 units if none starts there (rw.U2).
  template <class Faults>
  WARPHEAP_DEVICE unit_run disown(u64 unit) const {
    u32 const first = static_cast<u32>(unit / 32);
    u64 const bit = unit_marks::start_bit(unit);
    // relaxed: only one read-modify-write finds the mark, run_at() receives the end, and the words
    // order the contents.
    unit_marks const seen{marks(first).fetch_and(~bit, order::relaxed)};
    if ((seen.word & bit) == 0) return unit_run{0, 0};
    unit_run const run = run_at<Faults>(unit, seen);
    u64 const last = run.first + run.units - 1;
    marks(static_cast<u32>(last / 32)).fetch_and(~unit_marks::end_bit(last), order::relaxed);
    return run;
  }

  /// Makes every unit free, in order on stream `on`.
  WARPHEAP_HOST void initialize(stream_view on) const { creation::initialize_walk(*this, on); }
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::rw_malloc_parts
