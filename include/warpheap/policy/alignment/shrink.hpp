// SPDX-License-Identifier: Apache-2.0
// Alignment by shrinking the pool: its start moves up to a multiple of the alignment, and each
// request is padded to a multiple. Source: Eckert 2014, section 4.3.2 ("Shrink").
#pragma once

#include "../../platform/simt.hpp"
#include "../../util/bits.hpp"
#include "../memory_range.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace alignment {

/// Sizes padded to multiples of `Alignment` bytes, a power of two.
template <size_t Alignment = 16>
struct shrink {
  static_assert(Alignment >= 1 && (Alignment & (Alignment - 1)) == 0, "shrink: the alignment must be a power of two");
  static constexpr char const* name = "shrink";
  static constexpr size_t bytes = Alignment;

  /// `requested` bytes rounded up; 0 stays 0. A size that cannot be rounded up becomes one too
  /// large for any pool.
  WARPHEAP_HOST_DEVICE static constexpr size_t pad(size_t requested) {
    size_t const padded = (requested + Alignment - 1) & ~(Alignment - 1);
    return padded < requested ? ~size_t{0} & ~(Alignment - 1) : padded;
  }

  /// The promises of the policies behind this one for padded requests: every block is aligned to
  /// `Alignment` if they align multiples of it so.
  template <class Traits>
  WARPHEAP_HOST_DEVICE static constexpr Traits adjust(Traits promised) {
    Traits left = promised;
    if constexpr (requires { left.multiples_aligned_up_to; })
      if (Alignment > left.alignment && Alignment <= left.multiples_aligned_up_to) left.alignment = Alignment;
    if constexpr (requires { left.padded_aligned_up_to; })
      if (Alignment > left.alignment && Alignment <= left.padded_aligned_up_to) left.alignment = Alignment;
    return left;
  }

  /// The part of `pool` from the first multiple of the alignment to the last; empty if it holds
  /// none.
  WARPHEAP_HOST_DEVICE static memory_range align_pool(memory_range pool) {
    u64 const begin = reinterpret_cast<u64>(pool.begin);
    u64 const first = align_up(begin, Alignment), end = align_down(begin + pool.bytes, Alignment);
    return {reinterpret_cast<void*>(first), first < end ? end - first : 0};
  }
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::alignment
