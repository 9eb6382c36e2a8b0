// SPDX-License-Identifier: Apache-2.0
// Deals the pages that some lanes of a warp have found to the lanes that need one, in rounds. In
// each round every lane that has pages left offers its lowest: the s-th such lane gives it to the
// s-th lane that needs a page. All in registers.
//
// Source: Pham et al. 2022, algorithm 3, lines 9 to 16, and algorithm 4 (here nth_bit).
#pragma once

#include "../../../platform/simt.hpp"
#include "../../../util/bits.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace random_walk_parts {

/// A lane's result of a deal. A `Mask` has a bit for each page of a word.
template <class Mask>
struct deal {
  static constexpr u32 none = ~0u;

  u32 page;  ///< this lane's page; none if it still needs one
  /// the pages that this lane brought and that the deal gave away, perhaps to itself
  Mask taken = 0;

  /// active   lanes that call, all of them together
  /// left      pages of a word that the lane brings
  /// first     number of the page that bit 0 stands for
  /// held      the lane's page; none if it needs one
  WARPHEAP_DEVICE deal(lane_mask active, Mask left, u32 first, u32 held) : page{held} {
    lane_mask const below = simt::lanes_below();
    lane_mask needing = simt::ballot(active, page == none), having = simt::ballot(active, left != 0);
    while (needing != 0 && having != 0) {
      u32 const place = popcount(needing & below), givers = popcount(having);
      u32 const giver = nth_bit(having, place < givers ? place : givers - 1);
      Mask const lowest = left & (0 - left);
      u32 const offered = simt::shuffle(active, left != 0 ? first + lowest_bit(lowest) : none, giver);
      if (left != 0 && popcount(having & below) < popcount(needing)) {
        left &= ~lowest;
        taken |= lowest;
      }
      if (page == none && place < givers) page = offered;
      needing = simt::ballot(active, page == none);
      having = simt::ballot(active, left != 0);
    }
  }
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::random_walk_parts
