// SPDX-License-Identifier: Apache-2.0
// An owning array in device memory, with plain copies to and from the host, for data that tests and
// tools pass to kernels.
#pragma once

#include <type_traits>
#include <utility>
#include <vector>

#include "simt.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// `size()` objects of T in device memory, zeroed or copied from a vector.
template <class T>
class device_buffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  /// Nothing.
  device_buffer() = default;
  /// Zeroed.
  explicit device_buffer(size_t size) : size_{size} {
    data_ = static_cast<T*>(backend::allocate_bytes(size_bytes() + 1));
    backend::fill_bytes(data_, 0, size_bytes());
    synchronize(stream_view{});
  }
  /// A copy of `values`.
  explicit device_buffer(std::vector<T> const& values) : size_{values.size()} {
    data_ = static_cast<T*>(backend::allocate_bytes(size_bytes() + 1));
    backend::copy_bytes(data_, values.data(), size_bytes());
  }
  device_buffer(device_buffer&& other) noexcept
      : data_{std::exchange(other.data_, nullptr)}, size_{std::exchange(other.size_, 0)} {}
  device_buffer& operator=(device_buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~device_buffer() { backend::deallocate_bytes(data_); }

  /// Their address, for kernels.
  T* data() const noexcept { return data_; }
  /// How many.
  size_t size() const noexcept { return size_; }
  /// How many bytes.
  // NOLINTNEXTLINE(bugprone-sizeof-expression): T may be a pointer
  size_t size_bytes() const noexcept { return size_ * sizeof(T); }

  /// The contents, once all earlier work of the default stream is done.
  std::vector<T> to_host() const {
    std::vector<T> values(size_);
    backend::copy_bytes(values.data(), data_, size_bytes());
    return values;
  }

  /// Element `index`, copied to the host.
  T operator[](size_t index) const {
    T value;
    backend::copy_bytes(&value, data_ + index, sizeof(T));  // NOLINT(bugprone-sizeof-expression): T may be a pointer
    return value;
  }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

}}  // namespace warpheap::WARPHEAP_BACKEND
