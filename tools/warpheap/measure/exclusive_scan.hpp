// SPDX-License-Identifier: Apache-2.0
// Exclusive sums of an array in device memory. A program without an allocator on the device
// computes by them where each thread's memory starts. The toolkit's own: CUB on a GPU, the standard
// library's on a CPU. Nothing else in this project includes either.
#pragma once

#include "measure.hpp"

#if defined(__CUDACC__)
#include <cub/device/device_scan.cuh>
#else
#include <numeric>
#endif

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

/// sums[i] = values[0] + … + values[i - 1], for a number of values that is known beforehand.
class exclusive_scan {
 public:
#if defined(__CUDACC__)
  explicit exclusive_scan(u64 size) : size_{static_cast<i64>(size)} {
    size_t bytes = 0;
    cuda_backend::throw_on_error(cub::DeviceScan::ExclusiveSum(nullptr, bytes, none, none, size_),
                                 "cub::DeviceScan::ExclusiveSum");
    scratch_ = device_buffer<u8>(bytes);
  }

  /// On the default stream; does not wait.
  void run(u64 const* values, u64* sums) const {
    size_t bytes = scratch_.size();
    cuda_backend::throw_on_error(cub::DeviceScan::ExclusiveSum(scratch_.data(), bytes, values, sums, size_),
                                 "cub::DeviceScan::ExclusiveSum");
  }

 private:
  static constexpr u64* none = nullptr;
  i64 size_;
  device_buffer<u8> scratch_;
#else
  explicit exclusive_scan(u64 size) : size_{size} {}

  void run(u64 const* values, u64* sums) const {
    synchronize();  // a kernel may still write the values
    std::exclusive_scan(values, values + size_, sums, u64{0});
  }

 private:
  u64 size_;
#endif
};

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
