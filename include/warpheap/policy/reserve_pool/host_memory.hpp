// SPDX-License-Identifier: Apache-2.0
// The pool in host memory, pinned and mapped, so that kernels access it over the bus: slow, but as
// large as host memory. On the host backend, memory of the C library.
//
// The heap's metadata is there too: every call crosses the bus a few times. Good for a second heap
// behind a full first one (oom::overflow_to), and for blocks that the host reads.
#pragma once

#if !defined(__CUDACC_RTC__)

#include <cstdlib>
#include <string>
#include <utility>

#include "../../platform/errors.hpp"
#include "../../platform/simt.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace reserve_pool {

/// Owns one range of pinned host memory. Movable.
class host_memory {
 public:
  static constexpr char const* name = "host_memory";

  host_memory() = default;
  host_memory(host_memory&& other) noexcept { swap(other); }
  host_memory& operator=(host_memory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~host_memory() { release(); }

  /// Takes `bytes` bytes and returns their start as kernels see it. Called once. Throws
  /// out_of_memory.
  void* acquire(size_t bytes) {
#if defined(__CUDACC__)
    auto const status = cudaHostAlloc(&memory_, bytes, cudaHostAllocMapped | cudaHostAllocPortable);
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      refuse(bytes);
    }
    cuda_backend::throw_on_error(status, "cudaHostAlloc");
    void* mapped = nullptr;
    cuda_backend::throw_on_error(cudaHostGetDevicePointer(&mapped, memory_, 0), "cudaHostGetDevicePointer");
    return mapped;
#else
    constexpr size_t alignment = 256;
    memory_ = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    if (!memory_) refuse(bytes);
    return memory_;
#endif
  }

 private:
  [[noreturn]] static void refuse(size_t bytes) {
    throw out_of_memory{"the host has not " + std::to_string(bytes) + " bytes of memory that can be pinned"};
  }

  void release() noexcept {
#if defined(__CUDACC__)
    if (memory_ && cudaFreeHost(memory_) != cudaSuccess) cudaGetLastError();
#else
    std::free(memory_);
#endif
  }

  void swap(host_memory& other) noexcept { std::swap(memory_, other.memory_); }

  void* memory_ = nullptr;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::reserve_pool

#endif
