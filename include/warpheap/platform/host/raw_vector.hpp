// SPDX-License-Identifier: Apache-2.0
// A growing array for what runs at every scheduling point.
//
// Under -fsanitize=thread the members of std::vector are instrumented, and GCC inlines none into a
// function that is not. With WARPHEAP_HOST_RACES each access in them is a call of a hook.
#pragma once

#include <cstdlib>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include "sanitizer.hpp"

namespace warpheap::host::detail {

// NOLINTBEGIN(bugprone-sizeof-expression): T may be a pointer

/// The parts of std::vector that the memory model uses, for objects that may be copied as bytes.
template <class T>
class raw_vector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  raw_vector() = default;
  WARPHEAP_NO_TSAN raw_vector(raw_vector&& other) noexcept
      : data_{std::exchange(other.data_, nullptr)},
        size_{std::exchange(other.size_, 0)},
        room_{std::exchange(other.room_, 0)} {}
  raw_vector& operator=(raw_vector const&) = delete;
  ~raw_vector() { std::free(data_); }

  WARPHEAP_NO_TSAN T* begin() { return data_; }
  WARPHEAP_NO_TSAN T* end() { return data_ + size_; }
  WARPHEAP_NO_TSAN T const* begin() const { return data_; }
  WARPHEAP_NO_TSAN T const* end() const { return data_ + size_; }
  WARPHEAP_NO_TSAN T& operator[](size_t index) { return data_[index]; }
  WARPHEAP_NO_TSAN T& back() { return data_[size_ - 1]; }
  WARPHEAP_NO_TSAN size_t size() const { return size_; }
  WARPHEAP_NO_TSAN bool empty() const { return size_ == 0; }
  WARPHEAP_NO_TSAN void clear() { size_ = 0; }

  WARPHEAP_NO_TSAN void push_back(T const& made) {
    T const copy = made;
    if (size_ == room_) grow(size_ + 1);
    data_[size_++] = copy;
  }
  WARPHEAP_NO_TSAN T pop_back() { return data_[--size_]; }

  WARPHEAP_NO_TSAN void insert(size_t index, T const& made) {
    push_back(made);
    for (size_t i = size_ - 1; i > index; --i) data_[i] = data_[i - 1];
    data_[index] = made;
  }

  /// New ones are zero.
  WARPHEAP_NO_TSAN void resize(size_t size) {
    if (size > room_) grow(size);
    if (size > size_) std::memset(static_cast<void*>(data_ + size_), 0, (size - size_) * sizeof(T));
    size_ = size;
  }

  WARPHEAP_NO_TSAN void assign(T const* from, size_t size) {
    if (size > room_) grow(size);
    if (size > 0) std::memcpy(static_cast<void*>(data_), from, size * sizeof(T));
    size_ = size;
  }

 private:
  [[gnu::noinline]] void grow(size_t least) {
    size_t const room = least > 2 * room_ ? least : 2 * room_;
    auto* const grown = static_cast<T*>(std::realloc(static_cast<void*>(data_), room * sizeof(T)));
    if (!grown) throw std::bad_alloc{};
    data_ = grown;
    room_ = room;
  }

  T* data_ = nullptr;
  size_t size_ = 0;
  size_t room_ = 0;
};

// NOLINTEND(bugprone-sizeof-expression)

}  // namespace warpheap::host::detail
