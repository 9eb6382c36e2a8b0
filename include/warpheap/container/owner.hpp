// SPDX-License-Identifier: Apache-2.0
// A pointer with the duty to destroy what it leads to, and the count of objects that are there.
//
//   owner<node> mine{heap.make<node>(7)};
//   owner<float[]> row{heap.make_array<float>(n), n};
//   mine.reset(heap);
//   row.reset(heap);
//
// Kernels have no RAII. A destructor that frees is of no use to them:
//
//   - What a kernel takes is copied by bits, once for the grid and not once a thread, and its
//     destructor runs on the host, as soon as the launch is queued.
//   - A lane hands objects to others through shuffles, shared memory and words of blocks, as bits.
//     Which copy is the last is known to the program alone.
//   - Variables in shared memory have no destructors, and a lane that returns leaves the kernel's
//     other objects to lanes that go on.
//   - A destructor takes no heap. So each object would keep a reference to it, of 16 bytes or more.
//
// So an owner is its bits, frees nothing by itself, and takes the heap to do it.
#pragma once

#include "../heap/typed_calls.hpp"
#include "container_heap.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// The one pointer by which an object is destroyed: 8 bytes, trivially copyable, null in zeroed
/// memory. A copy is the same owner: of all copies reset one. One thread at a time.
template <class T>
class owner {
 public:
  /// Of nothing.
  constexpr owner() = default;
  /// Of what make() returned; of nothing for nullptr.
  WARPHEAP_HOST_DEVICE explicit constexpr owner(T* object) : object_{object} {}

  /// The object; nullptr if there is none.
  WARPHEAP_HOST_DEVICE T* get() const { return object_; }
  /// The object; there is one.
  WARPHEAP_HOST_DEVICE T& operator*() const { return *object_; }
  /// A member of the object; there is one.
  WARPHEAP_HOST_DEVICE T* operator->() const { return object_; }
  /// Whether there is an object.
  WARPHEAP_HOST_DEVICE explicit operator bool() const { return object_; }

  /// The object, which the caller owns from now on.
  WARPHEAP_HOST_DEVICE T* release() {
    T* const released = object_;
    object_ = nullptr;
    return released;
  }

  /// Destroys the object, if there is one, and frees its block. `upstream` frees what the heap that
  /// made it allocates.
  template <container_heap Heap>
  WARPHEAP_DEVICE void reset(Heap const& upstream, source_site site = source_site::current()) {
    detail::destroy_objects(upstream, release(), 1, site);
  }

 private:
  T* object_ = nullptr;
};

/// As owner<T>, of an array and its length: 16 bytes.
template <class T>
class owner<T[]> {
 public:
  /// Of nothing.
  constexpr owner() = default;
  /// Of what make_array() of `count` objects returned; of nothing for nullptr.
  WARPHEAP_HOST_DEVICE constexpr owner(T* objects, u64 count) : objects_{objects}, count_{objects ? count : 0} {}

  /// The first object; nullptr if there is none.
  WARPHEAP_HOST_DEVICE T* get() const { return objects_; }
  /// Object `index`, below size().
  WARPHEAP_HOST_DEVICE T& operator[](u64 index) const { return objects_[index]; }
  /// How many objects.
  WARPHEAP_HOST_DEVICE u64 size() const { return count_; }
  /// The first object.
  WARPHEAP_HOST_DEVICE T* begin() const { return objects_; }
  /// Behind the last.
  WARPHEAP_HOST_DEVICE T* end() const { return objects_ + count_; }
  /// Whether there are objects.
  WARPHEAP_HOST_DEVICE explicit operator bool() const { return objects_; }

  /// The objects, which the caller owns from now on.
  WARPHEAP_HOST_DEVICE T* release() {
    T* const released = objects_;
    *this = {};
    return released;
  }

  /// Destroys the objects, the last one first, and frees their block.
  template <container_heap Heap>
  WARPHEAP_DEVICE void reset(Heap const& upstream, source_site site = source_site::current()) {
    u64 const count = count_;
    detail::destroy_objects(upstream, release(), count, site);
  }

 private:
  T* objects_ = nullptr;
  u64 count_ = 0;
};
static_assert(sizeof(owner<u32>) == 8 && sizeof(owner<u32[]>) == 16 && __is_trivially_copyable(owner<u32[]>));

}}  // namespace warpheap::WARPHEAP_BACKEND
