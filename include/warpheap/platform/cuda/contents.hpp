// SPDX-License-Identifier: Apache-2.0
// The contract of host/contents.hpp, which checks on the host alone: here it does nothing.
#pragma once

#include "../types.hpp"

namespace warpheap::cuda_backend {

struct contents {
  WARPHEAP_DEVICE static void acquire(void const*, size_t) {}
  WARPHEAP_DEVICE static void release(void const*, size_t) {}
#if !defined(__CUDACC_RTC__)
  static void forget(void const*, size_t) {}
#endif
};

}  // namespace warpheap::cuda_backend
