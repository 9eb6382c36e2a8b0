// SPDX-License-Identifier: Apache-2.0
// What a test may leave out of the protocol, or reverse: to show that another test notices.
#pragma once

#include "words.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace halloc_parts {

/// Faults of the protocol that tests leave out or reverse.
struct no_faults {
  /// Whether a slab may be locked for another life (halloc.A3).
  WARPHEAP_DEVICE static bool may_lock(slab_state seen) { return seen.empty(); }
  /// Whether taken bits are cleared before the chunks are subtracted (halloc.A1).
  static constexpr bool clears_first = true;
  /// Whether a thread that replaces a head checks first that it is still the head.
  static constexpr bool rechecks_head = true;
  /// Whether a thread that takes a free slab must win its lock (halloc.A8).
  static constexpr bool locks_free_slabs = true;
  /// Whether a search decides by words (halloc.N1), waits for locked slabs, goes on from where it
  /// lost a race, and heeds moves (halloc.N3).
  static constexpr bool decides_by_words = true, waits_for_locked_slabs = true, goes_on = true, heeds_moves = true;
  /// Whether a call believes only searches that began after it, and only notes of the state's
  /// version (halloc.A4).
  static constexpr bool compares_numbers = true, compares_versions = true;
  /// Whether a thread puts a next head only where there is none (halloc.P3).
  static constexpr bool gives_to_empty_places = true;
  /// Called between two looks of a search, and between the steps of a free: tests delay them there.
  WARPHEAP_DEVICE static void linger_in_search() {}
  WARPHEAP_DEVICE static void linger_in_free() {}
  /// The chunks of the blocks that start at `starts`.
  WARPHEAP_DEVICE static u32 chunks_at(u64 word, u32 starts) { return halloc_parts::chunks_at(word, starts); }
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::halloc_parts
