// SPDX-License-Identifier: Apache-2.0
// The allocator that is there already: CUDA's device-side malloc on a GPU, the C library's on the
// host backend. It is the first to compare others with. CUDA's heap has one size for a process,
// fixed when the first kernel that uses it runs. The C library's has no size: on the host backend
// each heap counts what is live of it, and holds that to its pool.
#pragma once

#include "../../platform/simt.hpp"
#include "report.hpp"

#if !defined(__CUDACC_RTC__)
#include <cstdlib>
#endif
#if !defined(__CUDACC__)
#include <malloc.h>

#include <atomic>
#include <deque>
#include <mutex>
#endif

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace creation {

/// Device-side malloc and free of the toolkit, whose misuse is undefined.
class toolkit {
 public:
  /// Blocks lie in the toolkit's heap, wherever that is, and not in a reserve pool.
  static constexpr bool uses_toolkit_heap = true;
  static constexpr bool supports_mixed_heaps = true;  // there is but one
  static constexpr char const* name = "toolkit";
  static constexpr allocator_traits traits{.alignment = 16};

#if defined(__CUDACC__)
  /// nullptr for 0 bytes, which C leaves open, and for more bytes than an object may have.
  WARPHEAP_DEVICE void* create(size_t bytes) const { return is_size(bytes) ? ::malloc(bytes) : nullptr; }
  WARPHEAP_DEVICE void destroy(void* memory) const { ::free(memory); }
#else
  /// Likewise, and for what the pool has no room for.
  void* create(size_t bytes) const {
    void* const memory = is_size(bytes) ? ::malloc(bytes) : nullptr;
    if (!memory || try_reserve(counted_bytes(memory))) return memory;
    ::free(memory);
    return nullptr;
  }
  void destroy(void* memory) const {
    // relaxed, here and in try_reserve(): a count, which orders nothing
    if (memory && live_bytes_) live_bytes_->fetch_sub(counted_bytes(memory), std::memory_order_relaxed);
    ::free(memory);
  }
  size_t usable_size(void const* memory) const { return ::malloc_usable_size(const_cast<void*>(memory)); }
#endif

#if !defined(__CUDACC_RTC__)
  /// Bytes to reserve for a pool: the size that this allocator's own heap should have.
  static size_t required_bytes(size_t pool_bytes) { return pool_bytes; }

  static toolkit place(void*, size_t pool_bytes) {
    toolkit made;
    made.pool_bytes_ = pool_bytes;
#if !defined(__CUDACC__)
    made.live_bytes_ = new_count();
#endif
    return made;
  }

  /// Nothing to do: what is live stays live.
  void initialize(stream_view) const {}

  size_t pool_bytes() const { return pool_bytes_; }
  size_t metadata_bytes() const { return 0; }
#endif

 private:
  WARPHEAP_DEVICE static bool is_size(size_t bytes) { return bytes - 1 < ~size_t{0} / 2; }

#if !defined(__CUDACC__)
  /// Bytes of a block as they count: what was asked for, in units of 16, without the 8 bytes that
  /// the C library has beside.
  i64 counted_bytes(void const* memory) const { return static_cast<i64>(usable_size(memory)) / 16 * 16; }

  /// Counts bytes of a block if the pool has room for them. Without a count there always is.
  bool try_reserve(i64 bytes) const {
    if (!live_bytes_) return true;
    i64 live = live_bytes_->load(std::memory_order_relaxed);
    do {
      if (live + bytes > static_cast<i64>(pool_bytes_)) return false;
    } while (!live_bytes_->compare_exchange_weak(live, live + bytes, std::memory_order_relaxed));
    return true;
  }

  /// A heap's count. It stays when the heap goes, as its blocks do.
  static std::atomic<i64>* new_count() {
    static std::mutex mutex;
    static std::deque<std::atomic<i64>> counts;
    std::lock_guard const lock{mutex};
    return &counts.emplace_back(0);
  }

  /// Less than 0 after frees of blocks of another heap.
  std::atomic<i64>* live_bytes_ = nullptr;
#endif

  size_t pool_bytes_ = 0;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::creation
