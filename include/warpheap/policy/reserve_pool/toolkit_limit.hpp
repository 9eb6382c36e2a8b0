// SPDX-License-Identifier: Apache-2.0
// No pool: sets the size of the heap of CUDA's own device-side malloc. For creation::toolkit alone.
// Source: CudaSetLimits of mallocMC; Eckert 2014, section 3.3, names the call.
#pragma once

#if !defined(__CUDACC_RTC__)

#include "../../platform/simt.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace reserve_pool {

/// Raises the process's limit, and leaves it there: the size of a heap that kernels have used
/// cannot change. On the host backend it reserves nothing: creation::toolkit counts what is live.
class toolkit_limit {
 public:
  static constexpr char const* name = "toolkit_limit";
  static constexpr bool sets_toolkit_heap = true;

  /// Lets CUDA's heap have `bytes` bytes; returns nullptr. Throws cuda_error if a kernel has used
  /// the heap with a smaller size.
  void* acquire([[maybe_unused]] size_t bytes) {
#if defined(__CUDACC__)
    size_t current = 0;
    cuda_backend::throw_on_error(cudaDeviceGetLimit(&current, cudaLimitMallocHeapSize), "cudaDeviceGetLimit");
    if (current < bytes)
      cuda_backend::throw_on_error(cudaDeviceSetLimit(cudaLimitMallocHeapSize, bytes),
                                   "cudaDeviceSetLimit(cudaLimitMallocHeapSize)");
#endif
    return nullptr;
  }
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::reserve_pool

#endif
