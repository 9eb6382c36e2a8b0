// SPDX-License-Identifier: Apache-2.0
// The place of element i if elements fill pages of growing size: two of a, two of 2a, two of 4a,
// ...
//
//   page       0   |    1    |     2     |     3     |     4      |  5 ...
//   elements  0 .. |  a ..   |  2a ..    |  4a ..    |  6a ..     |  10a ...
//
// In binary, the highest bit of i + 2a gives the size of the page, the bit below it which of the
// two, and the other bits the place in the page. So there is no table and no search. When a page
// has just been started, its free places are at most a third of all places plus 2a.
//
// Pure functions; i + 2a fits 32 bits.
#pragma once

#include "../util/bits.hpp"

namespace warpheap {

/// Pages whose first has `FirstPage` elements, a power of two.
template <u32 FirstPage>
struct geometric_pages {
  static_assert(is_power_of_two(FirstPage) && FirstPage <= 1u << 30,
                "the first page has a power of two of elements, up to 2^30");

  /// How many pages there are.
  static constexpr u32 count = 2 * (31 - log2_floor(FirstPage));
  /// How many elements they have.
  static constexpr u64 elements = (u64{1} << 32) - 2 * u64{FirstPage};

  /// Where an element lies.
  struct place {
    u32 page;   ///< its number
    u32 index;  ///< in the page
  };

  /// `i` < elements.
  WARPHEAP_HOST_DEVICE static constexpr place place_of(u32 i) {
    u32 const shifted = i + 2 * FirstPage, below = highest_bit(shifted) - 1;
    return {2 * (below - log2_floor(FirstPage)) + (shifted >> below & 1), shifted & low_mask32(below)};
  }

  /// Elements of a page.
  WARPHEAP_HOST_DEVICE static constexpr u32 size_of(u32 page) { return FirstPage << (page / 2); }

  /// The first element of a page, or behind the last page.
  WARPHEAP_HOST_DEVICE static constexpr u64 first_of(u32 page) {
    return (u64{2 + page % 2} << (page / 2)) * FirstPage - 2 * u64{FirstPage};
  }
};

}  // namespace warpheap
