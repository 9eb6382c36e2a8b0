// SPDX-License-Identifier: Apache-2.0
// A pointer to objects that must be destroyed, with their count.
//
//   owner<node> mine{heap.make<node>(7)};
//   owner<float[]> row{heap.make_array<float>(n), n};
//   mine.reset(heap);
//   row.reset(heap);
//
// Kernels cannot use RAII. A destructor that frees is no use to them:
//
//   - Kernel arguments are copied bit by bit, once for the grid and not per thread, and their
//     destructors run on the host, as soon as the launch is queued.
//   - A lane passes objects to others as bits, through shuffles, shared memory and words of
//     blocks. Only the program knows which copy is the last.
//   - Variables in shared memory have no destructors, and a lane that returns leaves the kernel's
//     other objects to lanes that continue.
//   - A destructor takes no arguments. So each object would have to keep a reference to its heap,
//     16 bytes or more.
//
// So an owner is copied as bits, frees nothing by itself, and takes the heap as an argument.
#pragma once

#include "../heap/typed_calls.hpp"
#include "container_heap.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// The pointer through which an object is destroyed: 8 bytes, trivially copyable, null in zeroed
/// memory. All copies are the same owner: reset only one. One thread at a time.
template <class T>
class owner {
 public:
  /// Owns nothing.
  constexpr owner() = default;
  /// Owns what make() returned; nothing for nullptr.
  WARPHEAP_HOST_DEVICE explicit constexpr owner(T* object) : object_{object} {}

  /// The object; nullptr if there is none.
  WARPHEAP_HOST_DEVICE T* get() const { return object_; }
  /// The object, which must exist.
  WARPHEAP_HOST_DEVICE T& operator*() const { return *object_; }
  /// A member of the object, which must exist.
  WARPHEAP_HOST_DEVICE T* operator->() const { return object_; }
  /// Whether there is an object.
  WARPHEAP_HOST_DEVICE explicit operator bool() const { return object_; }

  /// Releases the object: the caller now owns it.
  WARPHEAP_HOST_DEVICE T* release() {
    T* const released = object_;
    object_ = nullptr;
    return released;
  }

  /// Destroys the object, if there is one, and frees its block. `upstream` must be able to free
  /// blocks of the heap that made it.
  template <container_heap Heap>
  WARPHEAP_DEVICE void reset(Heap const& upstream, source_site site = source_site::current()) {
    detail::destroy_objects(upstream, release(), 1, site);
  }

 private:
  T* object_ = nullptr;
};

/// An owner of an array, with its length: 16 bytes.
template <class T>
class owner<T[]> {
 public:
  /// Owns nothing.
  constexpr owner() = default;
  /// Owns what make_array() of `count` objects returned; nothing for nullptr.
  WARPHEAP_HOST_DEVICE constexpr owner(T* objects, u64 count) : objects_{objects}, count_{objects ? count : 0} {}

  /// The first object; nullptr if there is none.
  WARPHEAP_HOST_DEVICE T* get() const { return objects_; }
  /// Object `index`, below size().
  WARPHEAP_HOST_DEVICE T& operator[](u64 index) const { return objects_[index]; }
  /// How many objects.
  WARPHEAP_HOST_DEVICE u64 size() const { return count_; }
  /// The first object.
  WARPHEAP_HOST_DEVICE T* begin() const { return objects_; }
  /// One past the last.
  WARPHEAP_HOST_DEVICE T* end() const { return objects_ + count_; }
  /// Whether there are objects.
  WARPHEAP_HOST_DEVICE explicit operator bool() const { return objects_; }

  /// Releases the objects: the caller now owns them.
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
