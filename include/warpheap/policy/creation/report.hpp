// SPDX-License-Identifier: Apache-2.0
// A creation policy's promises to its callers, and its reports to the host.
#pragma once

#include "../../platform/types.hpp"

#if !defined(__CUDACC_RTC__)
#include <string>
#include <vector>
#endif

namespace warpheap {

/// An allocator's promises; the conformance suite tests exactly these.
struct allocator_traits {
  size_t alignment = 16;  ///< every result is a multiple of it, bytes
  /// powers of two up to this size are aligned to themselves, bytes
  size_t self_aligned_up_to = 0;
  /// multiples of a power of two up to this are aligned to that power, bytes
  size_t multiples_aligned_up_to = 0;
  /// If all requests are multiples of a power of two up to this, every block is aligned to it,
  /// bytes.
  size_t padded_aligned_up_to = 0;
  bool detects_misuse = false;  ///< double and foreign frees are counted and ignored
  /// nullptr means that there is no suitable block; full recovery after frees
  bool exact_out_of_memory = false;
  /// If true, nullptr comes after a bounded number of looks at every place that no other thread
  /// changes meanwhile, and means that no suitable block stayed free during the whole call: each
  /// was taken at some moment of it. If false, it means that at one instant each was owned, or
  /// reserved by a call in progress; then calls on a full heap may last as long as other threads
  /// free.
  bool one_pass_refusals = false;
  bool whole_pool = false;  ///< one request may take nearly all of an empty pool
  /// Larger requests always fail.
  size_t largest_bytes = ~size_t{0};
  /// Metadata is at most this many thousandths of the pool, plus 64 KiB.
  u32 metadata_permille = 63;
};

/// Statistics of a quiet heap. Bytes count whole blocks, that is, what usable_size() returns.
struct heap_statistics {
  u64 pool_bytes = 0;      ///< memory that blocks are made of
  u64 metadata_bytes = 0;  ///< everything outside the pool
  u64 live_blocks = 0;     ///< allocated and not freed
  u64 live_bytes = 0;      ///< of those blocks
  u64 slabs = 0;           ///< containers the pool is cut into
  u64 free_slabs = 0;      ///< belonging to no size class
  u64 empty_slabs = 0;     ///< belonging to one, without a live block
  u64 run_slabs = 0;       ///< part of a block larger than a slab
  u64 double_frees = 0;    ///< frees of a block that was not allocated: ignored
  u64 foreign_frees = 0;   ///< frees of pointers to no block of this heap: ignored
  u64 failures = 0;        ///< calls that found no memory; a waiting call counts each time

#if !defined(__CUDACC_RTC__)
  /// The counts of two heaps together.
  heap_statistics& operator+=(heap_statistics const& more) {
    using counts = heap_statistics;
    for (auto const count : {&counts::pool_bytes, &counts::metadata_bytes, &counts::live_blocks, &counts::live_bytes,
                             &counts::slabs, &counts::free_slabs, &counts::empty_slabs, &counts::run_slabs,
                             &counts::double_frees, &counts::foreign_frees, &counts::failures})
      this->*count += more.*count;
    return *this;
  }
#endif
};

/// Live blocks while kernels run, as a kernel adds them up. All members are 64 bits.
struct occupancy_sums {
  u64 blocks_of[64];         ///< by size class (structure/size_class.hpp)
  u64 runs;                  ///< blocks larger than a slab
  u64 run_bytes;             ///< of those
  u64 committed_bytes;       ///< of the pool that have memory
  u64 failures;              ///< refused calls
  u64 largest_failed_bytes;  ///< of these calls
};

#if !defined(__CUDACC_RTC__)
/// How many live blocks have one size.
struct size_count {
  size_t bytes;  ///< of a block
  u64 blocks;    ///< how many
};

/// Exact figures of a quiet heap: its statistics and more.
struct heap_snapshot : heap_statistics {
  std::vector<size_count> sizes;  ///< of all live blocks, smallest first
  u64 largest_available = 0;      ///< bytes that one call could get now; 0 if the heap is full
  u64 largest_failed_bytes = 0;   ///< as in gauge_reading
};

/// Result of a check of a quiet heap: a line for each violated invariant, with its number; empty if
/// all hold.
using invariant_report = std::vector<std::string>;

/// A visitor for for_each_live(). A class, because nvcc 13.0 takes a lambda in a concept for a
/// function that does not exist.
struct ignore_block {
  void operator()(void*, size_t) const {}
};

/// A creation policy that shows the host its state. snapshot() copies the metadata of a quiet heap
/// from the device. The copy has statistics(), check_invariants(), and for_each_live(visit), which
/// calls `visit(address, bytes)` for every live block in address order.
template <class P>
concept takes_snapshots = requires(P const policy) {
  policy.snapshot().statistics();
  policy.snapshot().check_invariants();
  policy.snapshot().for_each_live(ignore_block{});
};

/// One whose snapshot also has the largest block that could be allocated, and the largest that was
/// refused.
template <class P>
concept knows_largest = requires(P const policy) {
  policy.snapshot().largest_available();
  policy.snapshot().largest_failed_bytes();
};

/// A creation policy that can add up live blocks while kernels run, by a kernel on a stream.
template <class P>
concept adds_occupancy = P::adds_up;
#endif

}  // namespace warpheap
