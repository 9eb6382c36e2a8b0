// SPDX-License-Identifier: Apache-2.0
// Shared memory of a thread block, the same on both backends.
//
//   WARPHEAP_SHARED(tile, float[32][33]);                // __shared__ float tile[32][33];
//   auto const bins = dynamic_shared<u32>();             // extern __shared__ u32 bins[];
//   launch({.blocks = 64, .threads = 256, .shared_bytes = 4096}, kernel{}, …);
//
// It is not initialised; atomics in it are of block scope. On the host backend it holds a pattern
// at first, AddressSanitizer knows the bounds of each object, and an index of dynamic memory is
// checked.
#pragma once

#include "assert.hpp"

/// Declares `name` in the thread block's shared memory, of the type that follows; at block scope of
/// a kernel or a device function. No constructor and no destructor runs. A thread block may declare
/// 48 KiB.
#if defined(__CUDACC__)
#define WARPHEAP_SHARED(name, ...) __shared__ ::warpheap::shared_type<__VA_ARGS__> name
#else
#define WARPHEAP_SHARED(name, ...) auto& name = ::warpheap::simt::declared_shared<__VA_ARGS__>([] {})
#endif

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// An array's name without the array behind it.
template <class T>
using shared_type = T;

/// The dynamic shared memory of a thread block, as many `T` as fit.
template <class T>
class shared_array {
 public:
  /// Of `size` elements from `begin` on.
  WARPHEAP_DEVICE shared_array(T* begin, u32 size) : begin_{begin}, size_{size} {}

  /// How many elements there are.
  WARPHEAP_DEVICE u32 size() const { return size_; }
  /// The first element.
  WARPHEAP_DEVICE T* data() const { return begin_; }
  /// The first element.
  WARPHEAP_DEVICE T* begin() const { return begin_; }
  /// Behind the last element.
  WARPHEAP_DEVICE T* end() const { return begin_ + size_; }
  /// An index from size() on ends the kernel, except under NDEBUG.
  WARPHEAP_DEVICE T& operator[](u32 i) const {
    WARPHEAP_ASSERT(i < size_, "an index past the end of dynamic shared memory");
    return begin_[i];
  }

 private:
  T* begin_;
  u32 size_;
};

/// The launch's `shared_bytes`, from byte `offset` on, a multiple of alignof(T). Every call returns
/// the same memory.
template <class T>
WARPHEAP_DEVICE shared_array<T> dynamic_shared(u32 offset = 0) {
  u32 const bytes = simt::dynamic_shared_bytes();
  WARPHEAP_ASSERT(offset <= bytes && offset % alignof(T) == 0, "an offset that dynamic shared memory does not have");
  return {reinterpret_cast<T*>(static_cast<u8*>(simt::dynamic_shared()) + offset),
          static_cast<u32>((bytes - offset) / sizeof(T))};
}

}}  // namespace warpheap::WARPHEAP_BACKEND
