// SPDX-License-Identifier: Apache-2.0
// How full a heap is while kernels use it. A reading launches a small kernel in its own stream,
// ahead of thread blocks that other kernels have not started yet, and waits only for that kernel.
// It costs calls of malloc and free nothing. If running kernels leave no room on any
// multiprocessor, a reading waits until one of their thread blocks ends.
#pragma once

#if !defined(__CUDACC_RTC__)

#include <cstring>
#include <utility>
#include <vector>

#include "../platform/device_buffer.hpp"
#include "../structure/size_class.hpp"
#include "heap.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

namespace detail {

/// Kernel: stores the sums where the host can read them. A copy would wait for the default stream.
struct tell_sums {
  WARPHEAP_DEVICE void operator()(u64 const* sums, u32 count, u64* shared) const {
    for (u32 i = simt::thread_index(); i < count; i += simt::block_dim())
      // relaxed: the host waits for the kernel.
      atomic_ref<u64, scope::system>{shared[i]}.store(sums[i], order::relaxed);
  }
};

}  // namespace detail

/// The state at about one moment. A call in progress may be counted or not.
struct gauge_reading {
  u64 pool_bytes = 0;            ///< the most that the pool may have
  u64 committed_bytes = 0;       ///< those that have memory
  u64 live_blocks = 0;           ///< allocated and not freed
  u64 live_bytes = 0;            ///< in whole blocks
  u64 highest_live_bytes = 0;    ///< of all readings of this gauge
  u64 failures = 0;              ///< refused calls since the heap was made or reset
  u64 largest_failed_bytes = 0;  ///< of these calls; up to the pool, as a whole block
  /// Size classes with live blocks, smallest first. Blocks larger than a slab are in none.
  std::vector<size_count> classes;
};

/// Reads one heap, repeatedly; of two heaps one behind the other, the first. The heap must outlive
/// it. For one host thread at a time. On the host backend the kernels of a stream run when any host
/// thread synchronizes; for a thread of its own, make a gauge with stream::apart().
template <class Allocator>
class gauge {
 public:
  /// The heap need not be quiet.
  explicit gauge(basic_heap<Allocator> const& observed,
                 stream on = stream::urgent()) requires adds_occupancy<typename Allocator::creation_type>
      : creation_{observed.ref().creation()}, sums_(1), shared_{words}, own_{std::move(on)} {}

  /// The current state. Waits for two small kernels on its own stream, which start beside running
  /// ones.
  gauge_reading read() {
    backend::fill_bytes(sums_.data(), 0, sizeof(occupancy_sums), own_);
    creation_.add_occupancy(sums_.data(), own_);
    launch(own_, {1, 128}, detail::tell_sums{}, static_cast<u64 const*>(sums_of_words()), words, shared_.device());
    synchronize(own_);
    return reading();
  }

 private:
  static constexpr u32 words = sizeof(occupancy_sums) / sizeof(u64);
  static_assert(sizeof(occupancy_sums::blocks_of) == size_class_count * sizeof(u64));

  u64* sums_of_words() const { return reinterpret_cast<u64*>(sums_.data()); }

  gauge_reading reading() {
    u64 told[words];
    for (u32 i = 0; i < words; ++i) told[i] = shared_.load(i);
    occupancy_sums seen;
    std::memcpy(&seen, told, sizeof seen);
    gauge_reading now;
    now.pool_bytes = creation_.pool_bytes();
    now.committed_bytes = seen.committed_bytes;
    now.failures = seen.failures;
    now.largest_failed_bytes = seen.largest_failed_bytes;
    now.live_blocks = seen.runs;
    now.live_bytes = seen.run_bytes;
    for (u32 size_class = 0; size_class < size_class_count; ++size_class) {
      u64 const blocks = seen.blocks_of[size_class];
      if (blocks == 0) continue;
      now.classes.push_back({class_bytes(size_class), blocks});
      now.live_blocks += blocks;
      now.live_bytes += blocks * class_bytes(size_class);
    }
    if (now.live_bytes > highest_) highest_ = now.live_bytes;
    now.highest_live_bytes = highest_;
    return now;
  }

  typename Allocator::creation_type creation_;
  device_buffer<occupancy_sums> sums_;
  backend::shared_words shared_;
  stream own_;
  u64 highest_ = 0;
};

/// A heap's gauge has the heap's allocator.
template <class Allocator>
gauge(basic_heap<Allocator> const&) -> gauge<Allocator>;
template <class Allocator>
gauge(basic_heap<Allocator> const&, stream) -> gauge<Allocator>;

}}  // namespace warpheap::WARPHEAP_BACKEND

#endif
