// SPDX-License-Identifier: Apache-2.0
// An array that one thread at a time can grow and shrink: a pointer, a size and a capacity, in 16
// bytes. Kernels cannot use RAII (container/owner.hpp says why), so it stores no heap and frees
// nothing by itself, and may be anywhere: in registers, in shared memory, in a block of a heap, or
// in zeroed memory, which holds empty vectors.
//
//   vector<u32> found;
//   if (!found.push_back(heap, 7)) …                 // no memory: `found` is as before
//   found.destroy(heap);
//
// A vector is copied as bits. A copy is the same vector, not another one: use only one of the
// copies, and pass it from thread to thread like any other memory.
//
// Growth doubles the capacity, so that pushing n elements costs O(n) and at most twice their
// memory; if there is no memory for that, it takes just what is needed. Blocks grow in place where
// the heap can, and contents that have to move are copied by all converged lanes. All growth is one
// function that is not inlined: a malloc is tens of KiB of machine code, and the lanes of a warp
// that grow at the same time call it together.
#pragma once

#include "../heap/generic_calls.hpp"
#include "../platform/assert.hpp"
#include "container_heap.hpp"

#if !defined(__CUDACC_RTC__)
#include <vector>
#endif

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// `size()` elements in a block of a heap. `T` is trivially copyable, and needs no more alignment
/// than the heap's blocks have, unless the heap has aligned_alloc(). One thread at a time. All
/// calls on one vector must take heaps that can free each other's blocks.
///
///   vector.V1  size <= capacity, and the block at `data` has room for `capacity` elements
///   vector.V2  capacity == 0 exactly if there is no block; then `data` is nullptr
///
/// A call that gets no memory returns false or nullptr and leaves all elements where they were.
template <class T>
class vector {
 public:
  /// The most elements.
  static constexpr u32 most = ~u32{0};

  /// No elements, no memory.
  constexpr vector() = default;

  /// Elements.
  WARPHEAP_HOST_DEVICE u32 size() const { return size_; }
  /// Elements that fit before it has to grow.
  WARPHEAP_HOST_DEVICE u32 capacity() const { return capacity_; }
  /// Whether it has no elements.
  WARPHEAP_HOST_DEVICE bool empty() const { return size_ == 0; }

  /// The first element. Like a pointer, a const vector gives access to elements that may be
  /// changed. Invalid after a call that takes the heap.
  WARPHEAP_HOST_DEVICE T* data() const { return data_; }
  /// The first element.
  WARPHEAP_HOST_DEVICE T* begin() const { return data_; }
  /// One past the last.
  WARPHEAP_HOST_DEVICE T* end() const { return data_ + size_; }
  /// Element `index`. One from size() on ends the kernel, except under NDEBUG.
  WARPHEAP_DEVICE T& operator[](u32 index) const {
    WARPHEAP_ASSERT(index < size_, "vector: an index past the end");
    return data_[index];
  }
  /// The last element, which must exist.
  WARPHEAP_DEVICE T& back() const { return (*this)[size_ - 1]; }

  /// Adds an element, a copy of `value`, which may be one of its own; false if there is no memory.
  /// Amortised O(1).
  template <container_heap Heap>
  WARPHEAP_DEVICE bool push_back(Heap const& upstream, T const& value, source_site site = source_site::current()) {
    T const copy = value;  // `value` may be an element, and move
    T* const added = extend(upstream, 1, site);
    if (added) *added = copy;
    return added;
  }

  /// Adds `count` elements, which may be its own; if there is no memory, adds none and returns
  /// false.
  template <container_heap Heap>
  WARPHEAP_DEVICE bool append(Heap const& upstream, T const* values, u64 count,
                              source_site site = source_site::current()) {
    u64 const offset = reinterpret_cast<u64>(values) - reinterpret_cast<u64>(data_);
    bool const are_own = offset < u64{size_} * sizeof(T);
    T* const added = extend(upstream, count, site);
    if (!added) return count == 0;
    // By this lane alone: no other lane can read its local memory.
    T const* const from = are_own ? data_ + offset / sizeof(T) : values;
    for (u64 i = 0; i < count; ++i) added[i] = from[i];
    return true;
  }

  /// Adds `count` elements, 1 or more, without initialising them, and returns the first; if there
  /// is no memory, adds none and returns nullptr.
  template <container_heap Heap>
  WARPHEAP_DEVICE T* extend(Heap const& upstream, u64 count, source_site site = source_site::current()) {
    if (count > capacity_ - size_ && !grow(upstream, count, site)) return nullptr;
    T* const first = data_ + size_;
    size_ += static_cast<u32>(count);
    return first;
  }

  /// Makes it `count` elements long by removing the last ones or adding copies of `value`; false if
  /// there is no memory for these.
  template <container_heap Heap>
  WARPHEAP_DEVICE bool resize(Heap const& upstream, u64 count, T const& value = T{},
                              source_site site = source_site::current()) {
    if (count > size_) {
      u64 const more = count - size_;
      T const copy = value;
      T* const added = extend(upstream, more, site);
      if (!added) return false;
      for (u64 i = 0; i < more; ++i) added[i] = copy;
    }
    size_ = static_cast<u32>(count);
    return true;
  }

  /// Makes room for exactly `count` elements in all; false if there is no memory.
  template <container_heap Heap>
  WARPHEAP_DEVICE bool reserve(Heap const& upstream, u64 count, source_site site = source_site::current()) {
    if (count > most) return false;
    auto const wanted = static_cast<u32>(count);
    return wanted <= capacity_ || take_room(upstream, wanted, site);
  }

  /// Adds an element before element `index`, or as the last if that is size(); false if there is
  /// no memory. The elements after it keep their order, and each moves.
  template <container_heap Heap>
  WARPHEAP_DEVICE bool insert(Heap const& upstream, u32 index, T const& value,
                              source_site site = source_site::current()) {
    WARPHEAP_ASSERT(index <= size_, "vector: an insertion past the end");
    T const copy = value;
    if (!extend(upstream, 1, site)) return false;
    for (u32 i = size_ - 1; i > index; --i) data_[i] = data_[i - 1];
    data_[index] = copy;
    return true;
  }

  /// Removes element `index`. Those after it keep their order, and each moves.
  WARPHEAP_DEVICE void erase(u32 index) {
    WARPHEAP_ASSERT(index < size_, "vector: an index past the end");
    --size_;
    for (u32 i = index; i < size_; ++i) data_[i] = data_[i + 1];
  }

  /// Removes element `index` in O(1): the last takes its place.
  WARPHEAP_DEVICE void erase_unordered(u32 index) {
    (*this)[index] = back();
    --size_;
  }

  /// Removes the last element, which must exist, and returns it.
  WARPHEAP_DEVICE T pop_back() {
    T const last = back();
    --size_;
    return last;
  }

  /// Removes all elements from `count` on, which is at most size(), and keeps the memory.
  WARPHEAP_DEVICE void truncate(u32 count) {
    WARPHEAP_ASSERT(count <= size_, "vector: a length past the end");
    size_ = count;
  }
  /// Removes all elements, and keeps the memory.
  WARPHEAP_DEVICE void clear() { size_ = 0; }

  /// Frees memory that the elements do not need: they move to a smaller block, if there is one. A
  /// heap with realloc() may leave them in place if they need more than half of the block.
  template <container_heap Heap>
  WARPHEAP_DEVICE void shrink_to_fit(Heap const& upstream, source_site site = source_site::current()) {
    if (size_ == 0) return destroy(upstream, site);
    if (size_ < capacity_) take_room(upstream, size_, site);
  }

  /// Frees all memory: the vector is then empty, and may be used again.
  template <container_heap Heap>
  WARPHEAP_DEVICE void destroy(Heap const& upstream, source_site site = source_site::current()) {
    detail::deallocate(upstream, data_, site);
    *this = {};
  }

#if !defined(__CUDACC_RTC__)
  /// The elements on the host, once all earlier work of the default stream is done. Call it on a
  /// copy of the vector, such as device_buffer's.
  std::vector<T> to_host() const {
    std::vector<T> elements(size_);
    backend::copy_bytes(elements.data(), data_, size_ * sizeof(T));
    return elements;
  }
#endif

 private:
  static constexpr u32 first_capacity = sizeof(T) < 16 ? 16 / sizeof(T) : 1;  // no block is smaller

  /// Makes room for `count` more; false if there is no memory.
  template <class Heap>
  WARPHEAP_DEVICE bool grow(Heap const& upstream, u64 count, source_site site) {
    if (count > most - size_) return false;
    u32 const least = size_ + static_cast<u32>(count), doubled = capacity_ > most / 2 ? most : 2 * capacity_;
    u32 const ample = doubled > first_capacity ? doubled : first_capacity;
    return (least < ample && take_room(upstream, ample, site)) || take_room(upstream, least, site);
  }

  /// Makes room for `count` elements in all, at least size(); false if there is no memory.
  template <class Heap>
  WARPHEAP_DEVICE bool take_room(Heap const& upstream, u32 count, source_site site) {
    static_assert(__is_trivially_copyable(T),
                  "vector<T>: T must be trivially copyable, as elements move by their bits");
    constexpr size_t alignment = alignof(T) <= detail::traits_of<Heap>().alignment ? 1 : alignof(T);
    auto const [memory, bytes] =
        detail::resized<alignment>(upstream, data_, u64{size_} * sizeof(T), u64{count} * sizeof(T), site);
    if (!memory) return false;
    u64 const room = bytes / sizeof(T);
    data_ = static_cast<T*>(memory);
    capacity_ = room < most ? static_cast<u32>(room) : most;
    return true;
  }

  T* data_ = nullptr;
  u32 size_ = 0;
  u32 capacity_ = 0;
};
static_assert(sizeof(vector<u32>) == 16 && __is_trivially_copyable(vector<u32>));

}}  // namespace warpheap::WARPHEAP_BACKEND
