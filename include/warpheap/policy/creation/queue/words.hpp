// SPDX-License-Identifier: Apache-2.0
// A word of a chunk: which of 32 pages are taken, and which class the chunk belongs to. The class
// is in the word, so that no page of one class is taken or freed by a thread that has another in
// mind.
//
//    63  49  48  47  41   40   39    32 31                0
//   |   0  | slots |  0  | live | class |       taken       |
//
//   queue.W1  a taken bit has one owner: the thread that set it, until a free clears it.
//   queue.W2  a word is live if and only if its chunk belongs to a class, the word has pages of
//       that class, and no thread is about to change either. A word that is not live has no taken
//       page, and has the last class or the next.
//   queue.W3  bits of pages that do not exist are set in a live word.
//   queue.W4  slots is set in the first word of a chunk whose bytes are a queue's slots; taken is
//       then that queue's class.
#pragma once

#include "../../../util/bits.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace queue_parts {

/// Pages of a chunk word.
inline constexpr u32 word_pages = 32;

struct chunk_word {
  u64 word = 0;

  static constexpr u64 live_bit = u64{1} << 40, slots_bit = u64{1} << 48;

  WARPHEAP_HOST_DEVICE static constexpr chunk_word of(u32 size_class, u32 taken) {
    return {live_bit | u64{size_class} << 32 | taken};
  }
  WARPHEAP_HOST_DEVICE static constexpr chunk_word without_class(u32 last_class) { return {u64{last_class} << 32}; }

  /// The word of a chunk that had the last class, when it becomes slots of a queue.
  WARPHEAP_HOST_DEVICE static constexpr chunk_word slots_of(u32 queue_class, u32 last_class) {
    return {slots_bit | u64{last_class} << 32 | queue_class};
  }
  WARPHEAP_HOST_DEVICE constexpr bool has_slots() const { return (word & slots_bit) != 0; }

  WARPHEAP_HOST_DEVICE constexpr bool live() const { return (word & live_bit) != 0; }
  WARPHEAP_HOST_DEVICE constexpr u32 size_class() const { return static_cast<u32>(word >> 32) & 0xff; }
  WARPHEAP_HOST_DEVICE constexpr u32 taken() const { return static_cast<u32>(word); }
  WARPHEAP_HOST_DEVICE constexpr bool serves(u32 size_class) const {
    return word >> 32 == of(size_class, 0).word >> 32;
  }
  /// Pages that a request of the class could take.
  WARPHEAP_HOST_DEVICE constexpr u32 free_for(u32 size_class) const { return serves(size_class) ? ~taken() : 0; }
  /// Pages that a free of the class could clear.
  WARPHEAP_HOST_DEVICE constexpr u32 taken_of(u32 size_class) const { return serves(size_class) ? taken() : 0; }
  WARPHEAP_HOST_DEVICE constexpr bool same_role(chunk_word other) const { return word >> 32 == other.word >> 32; }
};

/// Pages taken from one word.
struct taken_pages {
  u32 word = ~0u;  ///< its number
  u32 pages = 0;   ///< a bit each
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::queue_parts
