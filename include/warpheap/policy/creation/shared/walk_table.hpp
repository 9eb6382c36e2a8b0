// SPDX-License-Identifier: Apache-2.0
// The words of a bitmap that lanes walk over, and what lies beside them.
//
//   metadata()   counts    128 bytes
//                steps     128 bytes: of threads and of warps, where they are counted
//                pass      searches that saw all and found nothing
//                words     8 bytes for WordUnits units: walk_word.hpp
//                ...       the table's
//
// Orders: the release of a free and the acquire of the thread that takes the unit meet in the word.
// All changes of a word are read-modify-writes, so a thread that reads a later value has acquired
// from every free before it.
#pragma once

#include "unit_pool.hpp"
#include "walk_faults.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace creation {

/// `Classes`: how many sizes a search may be for.
template <size_t UnitBytes, class Number, u32 WordUnits, u32 Classes>
class walk_table : public unit_pool<UnitBytes, 4096, Number> {
  using pool_type = unit_pool<UnitBytes, 4096, Number>;

 public:
  using pool_type::pool_type, pool_type::units, pool_type::metadata;
  using pass_type = shared_pass<Classes>;

  WARPHEAP_HOST_DEVICE u32 words() const { return static_cast<u32>((units() + WordUnits - 1) / WordUnits); }
  WARPHEAP_DEVICE atomic_ref<u64> word(u32 index) const { return atomic_ref<u64>{words_at()[index]}; }
  /// What the word held lately: a hint.
  WARPHEAP_DEVICE walk_word look_at(u32 index) const { return walk_word{word(index).load(order::relaxed)}; }
  WARPHEAP_HOST_DEVICE pass_type pass() const { return pass_type{reinterpret_cast<u64*>(metadata() + pass_offset)}; }
  WARPHEAP_HOST_DEVICE u64* steps() const { return reinterpret_cast<u64*>(metadata() + steps_offset); }

  /// Sets the bits of units that do not exist (walk.K3). One lane.
  WARPHEAP_DEVICE void close_last_word() const {
    u32 const rest = units() % WordUnits;
    // relaxed: the launch orders it.
    if (rest != 0) word(words() - 1).fetch_or(low_mask(WordUnits) & ~low_mask(rest), order::relaxed);
  }

  // Offsets in the metadata.
  static constexpr u64 steps_offset = 128;
  static constexpr u64 pass_offset = 256;
  static constexpr u64 words_offset = pass_offset + pass_type::bytes;
  static_assert(words_offset % 128 == 0);

 protected:
  WARPHEAP_HOST_DEVICE u64* words_at() const { return reinterpret_cast<u64*>(metadata() + words_offset); }
};

/// Kernel of one thread.
struct close_last_word {
  template <class Table>
  WARPHEAP_DEVICE void operator()(Table table) const {
    table.close_last_word();
  }
};

/// Makes every unit free, in order on stream `on`.
template <class Table>
WARPHEAP_HOST void initialize_walk(Table const& table, stream_view on) {
  backend::fill_bytes(table.metadata(), 0, table.metadata_bytes(), on);
  launch(on, {1, 1}, close_last_word{}, table);
}

}}}  // namespace warpheap::WARPHEAP_BACKEND::creation
