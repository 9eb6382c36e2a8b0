// SPDX-License-Identifier: Apache-2.0
// What a hash map is made with: its sizes, and what happens to values that it drops. Tests change
// the sizes, and plant faults.
#pragma once

#include "../../platform/simt.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace map_parts {

struct standard {
  /// Sectors of a window in the level that reserve(), compact() and clear() make. With sixteen
  /// none of 2^24 uniform keys leaves a level that they fill to a half, and 2 in a million leave
  /// one that they fill to 0.8.
  static constexpr u32 planned_window = 16;
  /// Sectors of a window in all other levels: a search for a new key looks at all of them.
  static constexpr u32 grown_window = 4;
  /// Sectors of the first block where nothing was reserved, 2 at least.
  static constexpr u32 first_sectors = 64;
  /// Sectors that one thread zeroes at a time.
  static constexpr u32 chunk_sectors = 64;

  /// Called with each value that a map of blocks drops.
  template <class Heap, class V>
  WARPHEAP_DEVICE static void drop(Heap const&, V&) {}

  // False is a fault, which a test must find.
  static constexpr bool keeps_erased_keys = true, minds_lost_races = true, elects = true, zeroes_first = true,
                        releases = true;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::map_parts
