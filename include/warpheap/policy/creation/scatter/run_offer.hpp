// The runs of one length that a search found, offered to everybody: a list of first pages, and this word, which says how many
// of them have an owner.
//
//    63        40 39     24 23         0
//   |   length   |  count  |   drawn   |      0: nothing is offered
//
//   length   pages of each run; 0: nobody may draw
//   count    runs of the list
//   drawn    runs that were drawn, and how many more were asked for in vain: `fetch_add` of what a caller wants gives it the
//            runs from the old value on, as far as there are any. Callers look before they add, so it exceeds the count by
//            no more than all threads of a GPU want at once.
#pragma once

#include "../../../platform/types.hpp"

namespace warpheap {

/// A value of the word; pure, so that every decision can be tested without threads.
struct run_offer {
  u64 word = 0;

  static constexpr u32 drawn_bits = 24, count_bits = 16, length_bits = 64 - drawn_bits - count_bits;
  static constexpr u32 most_runs = (1u << count_bits) - 1;

  WARPHEAP_HOST_DEVICE constexpr u32 drawn() const { return static_cast<u32>(word) & ((1u << drawn_bits) - 1); }
  WARPHEAP_HOST_DEVICE constexpr u32 count() const { return static_cast<u32>(word >> drawn_bits) & most_runs; }
  WARPHEAP_HOST_DEVICE constexpr u32 length() const { return static_cast<u32>(word >> (drawn_bits + count_bits)); }

  /// Runs that have an owner.
  WARPHEAP_HOST_DEVICE constexpr u32 taken() const { return drawn() < count() ? drawn() : count(); }
  /// Whether there is a run of this length to be drawn.
  WARPHEAP_HOST_DEVICE constexpr bool has(u32 pages) const { return length() == pages && drawn() < count(); }
  /// How many runs one who adds `wanted` to this value makes his own.
  WARPHEAP_HOST_DEVICE constexpr u32 granted(u32 wanted) const {
    u32 const left = count() - taken();
    return wanted < left ? wanted : left;
  }

  /// `count` runs of `pages` pages, of which the first `taken` have an owner. Lengths that the word cannot say are not offered.
  WARPHEAP_HOST_DEVICE static constexpr run_offer of(u32 pages, u32 count, u32 taken) {
    u64 const length = pages >> length_bits == 0 ? pages : 0;
    return {length << (drawn_bits + count_bits) | u64{count} << drawn_bits | taken};
  }
};

static_assert(run_offer::of(2, 40, 32).has(2) && !run_offer::of(2, 40, 32).has(3) && !run_offer::of(2, 40, 40).has(2));
static_assert(run_offer::of(2, 40, 32).granted(32) == 8 && run_offer{run_offer::of(2, 40, 32).word + 32}.taken() == 40);
static_assert(run_offer{}.granted(7) == 0 && !run_offer{5}.has(0) && run_offer{5}.taken() == 0);

}  // namespace warpheap
