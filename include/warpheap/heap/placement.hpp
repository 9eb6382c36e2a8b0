// SPDX-License-Identifier: Apache-2.0
// The layout of a heap's memory: first the creation policy's part, then the state of the
// out-of-memory policy and of a growing pool, last a stamp and a copy of the reference that kernels
// take. The copy's address is the handle. The C++ owner and the set-up kernels for other languages
// share this.
#pragma once

#include "../policy/growth_state.hpp"
#include "allocator.hpp"
#include "layout_stamp.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace detail {

template <class Allocator>
struct placement {
  using creation_type = typename Allocator::creation_type;

  /// The smallest pool.
  static constexpr size_t minimum_bytes = size_t{1} << 20;

  /// Bytes of the out-of-memory policy, for a pool of `bytes` bytes.
  WARPHEAP_HOST static size_t oom_bytes([[maybe_unused]] size_t bytes) {
    using oom_type = typename Allocator::oom_type;
    if constexpr (overflow_policy<oom_type>) return oom_type::state_bytes;
    else if constexpr (keeps_state<oom_type>) return oom_type::state_bytes_for(creation_type::required_bytes(bytes));
    else return 0;
  }
  /// Bytes of a growing pool's state.
  WARPHEAP_HOST static constexpr size_t growth_bytes() {
    if constexpr (growing_pool<typename Allocator::reserve_pool_type>) return sizeof(growth_state);
    else return 0;
  }
  /// From the tail to the handle.
  WARPHEAP_HOST static size_t state_bytes(size_t bytes) {
    return oom_bytes(bytes) + growth_bytes() + sizeof(layout_stamp);
  }
  static constexpr size_t tail_alignment = 128;

  /// Bytes that a pool of `bytes` and everything that belongs to it take from an aligned start.
  WARPHEAP_HOST static size_t whole_bytes(size_t bytes) {
    return creation_type::required_bytes(bytes) + tail_alignment + state_bytes(bytes) + sizeof(Allocator);
  }

  /// The largest pool whose whole_bytes() is at most `memory_bytes`, which must suffice for the
  /// smallest pool.
  WARPHEAP_HOST static size_t pool_that_fits(size_t memory_bytes) {
    size_t fits = minimum_bytes, too_large = memory_bytes;
    while (too_large - fits > 1) {
      size_t const between = fits + (too_large - fits) / 2;
      (whole_bytes(between) <= memory_bytes ? fits : too_large) = between;
    }
    return fits;
  }

  /// Start of the parts after the creation policy's, which ends at `end`.
  WARPHEAP_HOST static u8* tail_after(u64 end) {
    return reinterpret_cast<u8*>((end + tail_alignment - 1) / tail_alignment * tail_alignment);
  }
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::detail
