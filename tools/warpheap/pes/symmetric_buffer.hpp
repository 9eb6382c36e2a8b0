// SPDX-License-Identifier: Apache-2.0
// An array in symmetric memory, which kernels of other PEs read by pointer.
#pragma once

#include <utility>
#include <vector>

#include "warpheap/nvshmem/symmetric_memory.hpp"

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND {

/// `size()` objects of T on each PE, zeroed. All PEs make, replace and destroy one together, with
/// the same size.
template <class T>
class symmetric_buffer {
 public:
  symmetric_buffer() = default;
  explicit symmetric_buffer(size_t size) : memory_{size * sizeof(T) + 1}, size_{size} {
    warpheap::backend::fill_bytes(data(), 0, size * sizeof(T));
    synchronize(stream_view{});
  }
  symmetric_buffer(symmetric_buffer&& other) noexcept
      : memory_{std::move(other.memory_)}, size_{std::exchange(other.size_, 0)} {}
  symmetric_buffer& operator=(symmetric_buffer&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~symmetric_buffer() = default;

  T* data() const noexcept { return static_cast<T*>(memory_.begin()); }
  size_t size() const noexcept { return size_; }

 private:
  symmetric_memory memory_;
  size_t size_ = 0;
};

/// What is at `own` here, as PE `pe` has it: an address for this PE's kernels and copies.
template <class T>
T* at_pe(T* own, u32 pe) {
  return own ? static_cast<T*>(nvshmem_ptr(own, static_cast<int>(pe))) : nullptr;
}

}}  // namespace warpheap::tool::WARPHEAP_BACKEND
