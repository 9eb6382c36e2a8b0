// SPDX-License-Identifier: Apache-2.0
// Objects instead of bytes: calls that every heap's reference has beside malloc and free.
//
//   auto* const made = heap.make<node>(value, next);
//   heap.destroy(made);
//
// A base class without members, one type per reference, so that it adds nothing to a reference's
// size. In a template where the heap's type is a parameter it is `heap.template make<node>()`.
//
// The last parameter of each call is a place in the source, which a checked heap reports. A
// parameter after a parameter pack is never deduced, so make() exists for up to four arguments, and
// make_at(), whose first parameter is the place, for any number.
#pragma once

#include "generic_calls.hpp"

#if !defined(__CUDACC_RTC__)
#include <new>
#endif

namespace warpheap { inline namespace WARPHEAP_BACKEND {
namespace detail {

/// A concept instead of an expression in construct(): for numbers nvcc 13.0 evaluated that to false
/// in typed_calls_test.cpp.
template <class T, class... Arguments>
concept made_by_parentheses = requires(void* memory, Arguments&&... arguments) {
  ::new (memory) T(static_cast<Arguments&&>(arguments)...);
};

/// Constructs a `T` at `memory`, which must have room for it, with a constructor or as an
/// aggregate.
template <class T, class... Arguments>
WARPHEAP_DEVICE T* construct(void* memory, Arguments&&... arguments) {
  if constexpr (made_by_parentheses<T, Arguments...>) return ::new (memory) T(static_cast<Arguments&&>(arguments)...);
  else return ::new (memory) T{static_cast<Arguments&&>(arguments)...};
}

/// Runs the destructors of `count` objects, the last one first, and frees their block.
template <class Heap, class T>
WARPHEAP_DEVICE void destroy_objects(Heap const& heap, T* objects, size_t count, source_site site) {
  if (objects)
    for (size_t left = count; left != 0; --left) objects[left - 1].~T();
  deallocate(heap, objects, site);
}

}  // namespace detail

/// Base class of a heap's reference `Heap`, which has malloc() and free(). Any thread may call,
/// converged or not, as with those.
template <class Heap>
class typed_calls {
 public:
  /// A new `T`, constructed like `new T(arguments...)`, or `new T{arguments...}` if it is an
  /// aggregate; without arguments its value is `T()`. nullptr if there is no memory; then no
  /// constructor runs. A type that needs more alignment than malloc() provides comes from
  /// aligned_alloc(), and does not compile if the heap has none.
  template <class T>
  WARPHEAP_DEVICE T* make(source_site site = source_site::current()) const {
    return make_at<T>(site);
  }
  /// As above, with one argument.
  template <class T, class First>
  WARPHEAP_DEVICE T* make(First&& first, source_site site = source_site::current()) const {
    return make_at<T>(site, static_cast<First&&>(first));
  }
  /// As above, with two.
  template <class T, class First, class Second>
  WARPHEAP_DEVICE T* make(First&& first, Second&& second, source_site site = source_site::current()) const {
    return make_at<T>(site, static_cast<First&&>(first), static_cast<Second&&>(second));
  }
  /// As above, with three.
  template <class T, class First, class Second, class Third>
  WARPHEAP_DEVICE T* make(First&& first, Second&& second, Third&& third,
                          source_site site = source_site::current()) const {
    return make_at<T>(site, static_cast<First&&>(first), static_cast<Second&&>(second), static_cast<Third&&>(third));
  }
  /// As above, with four.
  template <class T, class First, class Second, class Third, class Fourth>
  WARPHEAP_DEVICE T* make(First&& first, Second&& second, Third&& third, Fourth&& fourth,
                          source_site site = source_site::current()) const {
    return make_at<T>(site, static_cast<First&&>(first), static_cast<Second&&>(second), static_cast<Third&&>(third),
                      static_cast<Fourth&&>(fourth));
  }

  /// make() with any number of arguments, after the place.
  template <class T, class... Arguments>
  WARPHEAP_DEVICE T* make_at(source_site site, Arguments&&... arguments) const {
    void* const memory = detail::allocate<alignof(T)>(self(), sizeof(T), site);
    return memory ? detail::construct<T>(memory, static_cast<Arguments&&>(arguments)...) : nullptr;
  }

  /// Destroys an object that make() returned, and frees its memory. nullptr does nothing. `T` is
  /// the object's type, or a base class at the same address with a virtual destructor.
  template <class T>
  WARPHEAP_DEVICE void destroy(T* object, source_site site = source_site::current()) const {
    detail::destroy_objects(self(), object, 1, site);
  }

  /// `count` objects in one block, as from `new T[count]`: numbers and structures of them are not
  /// initialised, all other objects are default-constructed. nullptr for 0, if the bytes overflow,
  /// and if there is no memory.
  template <class T>
  WARPHEAP_DEVICE T* make_array(size_t count, source_site site = source_site::current()) const {
    if (count == 0 || count > ~size_t{0} / sizeof(T)) return nullptr;
    auto* const objects = static_cast<T*>(detail::allocate<alignof(T)>(self(), count * sizeof(T), site));
    if (objects)
      for (size_t i = 0; i < count; ++i) ::new (static_cast<void*>(objects + i)) T;
    return objects;
  }

  /// Destroys the objects that make_array() of this count returned, the last one first, and frees
  /// their memory. nullptr does nothing.
  template <class T>
  WARPHEAP_DEVICE void destroy_array(T* objects, size_t count, source_site site = source_site::current()) const {
    detail::destroy_objects(self(), objects, count, site);
  }

 private:
  WARPHEAP_DEVICE Heap const& self() const { return static_cast<Heap const&>(*this); }
};

}}  // namespace warpheap::WARPHEAP_BACKEND
