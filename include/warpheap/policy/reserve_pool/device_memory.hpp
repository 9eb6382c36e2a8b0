// SPDX-License-Identifier: Apache-2.0
// The pool's memory taken from the device's own allocator, once, for the life of the heap.
// Source: Eckert 2014, section 4.3.1 ("SimpleCudaMalloc").
#pragma once

#if !defined(__CUDACC_RTC__)

#include <utility>

#include "../../platform/simt.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace reserve_pool {

/// Owns one range of device memory. Movable; frees the memory when destroyed, ignoring errors if
/// the runtime is unloading.
class device_memory {
 public:
  static constexpr char const* name = "device_memory";
  /// Other GPUs may access it, also by atomics, once peer access is enabled.
  static constexpr bool peers_reach_it = true;

  device_memory() = default;
  device_memory(device_memory&& other) noexcept { swap(other); }
  device_memory& operator=(device_memory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~device_memory() { backend::deallocate_bytes(memory_); }

  /// Takes `bytes` bytes and returns where they start. Called once. Throws out_of_memory.
  void* acquire(size_t bytes) { return memory_ = backend::allocate_bytes(bytes); }

 private:
  void swap(device_memory& other) noexcept { std::swap(memory_, other.memory_); }

  void* memory_ = nullptr;
};

/// Device memory that is all zero at first. With creation policies that write nothing into their
/// pool, like slab_bitmap, a block reads as zeros where no block was before.
class zeroed_memory {
 public:
  static constexpr char const* name = "zeroed_memory";
  static constexpr bool peers_reach_it = device_memory::peers_reach_it;

  /// As in device_memory, but zeroed. The heap waits for the default stream before it can be used.
  void* acquire(size_t bytes) {
    void* const memory = memory_.acquire(bytes);
    backend::fill_bytes(memory, 0, bytes);
    return memory;
  }

 private:
  device_memory memory_;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::reserve_pool

#endif
