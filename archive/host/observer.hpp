// SPDX-License-Identifier: Apache-2.0
// What a heap has done, as its statistics tell it. For host threads beside each other and beside
// kernels: nothing here waits for the default stream.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include <warpheap/heap/gauge.hpp>

#include "../allocator.hpp"
#include "../warpheap.h"

namespace warpheap::archive {

using owner = basic_heap<allocator>;

class observer {
 public:
  /// `counts`: whether calls are counted.
  observer(owner const& heap, bool counts)
      : metadata_bytes_{heap.metadata_bytes()}, gauge_{heap}, rows_(counts ? backend::multiprocessors() : 0) {
    last_.pool_bytes = heap.pool_bytes();
    last_.committed_bytes = heap.committed_bytes();
  }

  /// Where kernels count, for archive::options.
  call_counts* rows() const { return rows_.size() != 0 ? rows_.data() : nullptr; }
  u32 row_count() const { return static_cast<u32>(rows_.size()); }

  /// What is true now.
  warpheap_statistics read() {
    std::lock_guard const one_reading{reading_};
    auto const seen = gauge_.read();
    warpheap_statistics told{};
    told.pool_bytes = seen.pool_bytes;
    told.committed_bytes = seen.committed_bytes;
    told.metadata_bytes = metadata_bytes_;
    told.live_blocks = seen.live_blocks;
    told.live_bytes = seen.live_bytes;
    told.highest_live_bytes = seen.highest_live_bytes;
    told.refusals = seen.failures;
    told.largest_refused_bytes = seen.largest_failed_bytes;
    if (rows()) add_counts(told);
    std::lock_guard const lock{mutex_};
    return last_ = told;
  }

  /// What the last read() told, also when the device's memory is gone, and while another reading
  /// waits for the GPU.
  warpheap_statistics last() {
    std::lock_guard const lock{mutex_};
    return last_;
  }

 private:
  void add_counts(warpheap_statistics& told) const {
    std::vector<call_counts> counted(rows_.size());
    backend::throw_on_error(
        cudaMemcpyAsync(counted.data(), rows_.data(), rows_.size_bytes(), cudaMemcpyDeviceToHost, own_),
        "cudaMemcpyAsync");
    synchronize(own_);
    for (auto const& row : counted) {
      told.calls += row.calls;
      told.frees += row.frees;
      told.refused_calls += row.refused;
    }
  }

  std::mutex reading_;
  std::mutex mutex_;  ///< of last_
  u64 metadata_bytes_;
  gauge<allocator> gauge_;
  device_buffer<call_counts> rows_;  ///< zero
  backend::stream own_;
  warpheap_statistics last_{};
};

}  // namespace warpheap::archive
