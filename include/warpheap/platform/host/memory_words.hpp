// SPDX-License-Identifier: Apache-2.0
// The location that an atomic access goes to: a word, half of one, or half of one that is accessed
// in both widths. Plain stores are noticed here.
#pragma once

#include <atomic>

#include "access.hpp"
#include "history.hpp"

namespace warpheap::host::detail {

/// Where an access goes: a location, or a half of one that is accessed in both widths.
struct target {
  location& place;
  u32 shift;
  bool is_half;

  WARPHEAP_NO_TSAN u64 part_of(u64 value) const { return is_half ? value >> shift & half_mask : value; }
  WARPHEAP_NO_TSAN u64 whole(u64 value, u64 part) const {
    return is_half ? (value & ~(half_mask << shift)) | part << shift : part;
  }
  static constexpr u64 half_mask = 0xffff'ffff;
};

class memory_words {
 public:
  /// The location of an access. A plain store that has changed it becomes its only message.
  WARPHEAP_NO_TSAN target find(view_store& views, access const& what, u64 memory) {
    using width = word_history::width;
    auto& word = history_.word_of(what.address);
    auto const wanted = what.bytes == 8 ? width::wide : width::narrow;
    if (word.accessed == width::unknown) word.accessed = wanted;
    if (word.accessed != wanted && word.accessed != width::mixed) {
      if (word.accessed == width::narrow) {
        for (u32 i = 0; i < 2; ++i) correct(views, word.parts[i], half_in_memory(what.address, i));
      }
      word.mix(views);
    }
    bool const upper = what.address & 4;
    if (word.accessed == width::mixed) {
      correct(views, word.parts[0], half_in_memory(what.address, 0) | half_in_memory(what.address, 1) << 32);
      return {word.parts[0], upper ? 32u : 0u, what.bytes == 4};
    }
    auto& place = word.parts[word.accessed == width::narrow && upper ? 1 : 0];
    correct(views, place, memory);
    return {place, 0, false};
  }

 private:
  static u64 half_in_memory(u64 address, u32 half) {
    auto& word = reinterpret_cast<u32*>(address & ~u64{7})[half];
    return std::atomic_ref<u32>{word}.load(std::memory_order_relaxed);
  }

  /// Where a plain store came between, what memory holds is the only message.
  WARPHEAP_NO_TSAN static void correct(view_store& views, location& place, u64 memory) {
    if (place.count && place.newest().value == memory) return;
    place.clear(views);
    place.insert(views, {.value = memory});
  }

  history_table history_;
};

}  // namespace warpheap::host::detail
