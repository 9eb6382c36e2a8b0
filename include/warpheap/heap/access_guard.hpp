// SPDX-License-Identifier: Apache-2.0
// Under AddressSanitizer, on the host backend: the bytes of a pool that belong to no live block are
// poisoned. So an access to a freed block, or past the requested bytes, is reported where it
// happens. Without AddressSanitizer none of this exists.
//
// For creation policies that touch no byte of their pool and know how large a block is. Those that
// keep headers in it, ualloc and throughput, would hit the poison, and so would distribution
// policies that divide a block.
//
//   guard.A1  poisoned: the whole pool when the heap begins or is reset; a block from when its free
//       begins, before another thread may get it.
//   guard.A2  accessible: of a block the bytes that were asked for, from before malloc returns; all
//       of it once usable_size() has told how many there are.
//   guard.A3  a pool whose heap is gone is accessible, since its memory may be the caller's.
#pragma once

#if !defined(__CUDACC_RTC__)
#include <utility>
#endif

#include "../policy/memory_range.hpp"
#include "block_source.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace detail {

#if !defined(__CUDACC_RTC__)

template <class Creation>
concept leaves_pool_alone = requires(Creation const creation) {
  { creation.untouched_pool() } -> same_type<memory_range>;
};

/// Whether the blocks of a heap are guarded.
template <class Creation, class Distribution>
inline constexpr bool guards_access = backend::tracks_access&& leaves_pool_alone<Creation>&&
    knows_block_size<Creation>&& hands_out_as_created<Distribution>;

/// Kernel of one thread: poisons a pool, in order on a stream (guard.A1).
struct forbid_pool {
  WARPHEAP_DEVICE void operator()(memory_range pool) const { backend::forbid_access(pool.begin, pool.bytes); }
};

/// Allows access to a pool when the heap is destroyed (guard.A3). Movable.
class pool_guard {
 public:
  pool_guard() = default;
  pool_guard(pool_guard&& other) noexcept : pool_{std::exchange(other.pool_, {})} {}
  pool_guard& operator=(pool_guard&& other) noexcept {
    std::swap(pool_, other.pool_);
    return *this;
  }
  ~pool_guard() { backend::allow_access(pool_.begin, pool_.bytes); }

  /// Forbids access to all of it, in order on stream `on`. A template, so that nvcc compiles no
  /// kernel for nothing.
  template <class Kernel = forbid_pool>
  void close(memory_range pool, stream_view on) {
    pool_ = pool;
    if (on) launch(on, {1, 1}, Kernel{}, pool);
    else backend::forbid_access(pool.begin, pool.bytes);
  }

 private:
  memory_range pool_;
};

#else

template <class Creation, class Distribution>
inline constexpr bool guards_access = false;

#endif

}}}  // namespace warpheap::WARPHEAP_BACKEND::detail
