// Pages that some lanes of a warp have found, dealt out to those that need one: in rounds, in each
// of which every lane that has pages left gives its lowest, the one of the s-th lane that has some
// to the s-th lane that needs one. All in
// registers.
//
// Source: Pham et al. 2022, algorithm 3, lines 9 to 16, and algorithm 4 (here nth_bit).
#pragma once

#include "../../../platform/simt.hpp"
#include "../../../util/bits.hpp"

namespace warpheap::inline WARPHEAP_BACKEND {

/// What became of a lane's need and of its pages, the bits of a `Mask`.
template <class Mask>
struct page_deal {
  static constexpr u32 none = ~0u;

  u32 page;  ///< this lane's page; none if it still needs one
  /// of the pages that this lane brought, those that lanes were given, itself perhaps among them
  Mask taken = 0;

  /// company   lanes that call, all of them together
  /// left      pages of a word that the lane brings
  /// first     number of the page that bit 0 stands for
  /// held      the lane's page; none if it needs one
  WARPHEAP_DEVICE page_deal(u32 company, Mask left, u32 first, u32 held) : page{held} {
    u32 const below = simt::lanes_below();
    u32 needing = simt::ballot(company, page == none), having = simt::ballot(company, left != 0);
    while (needing != 0 && having != 0) {
      u32 const place = popcount(needing & below), givers = popcount(having);
      u32 const giver = nth_bit(having, place < givers ? place : givers - 1);
      Mask const lowest = left & (0 - left);
      u32 const offered = simt::shuffle(company, left != 0 ? first + lowest_bit(lowest) : none, giver);
      if (left != 0 && popcount(having & below) < popcount(needing)) {
        left &= ~lowest;
        taken |= lowest;
      }
      if (page == none && place < givers) page = offered;
      needing = simt::ballot(company, page == none);
      having = simt::ballot(company, left != 0);
    }
  }
};

}  // namespace warpheap::inline WARPHEAP_BACKEND
