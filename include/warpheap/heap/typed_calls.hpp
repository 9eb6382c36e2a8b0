// SPDX-License-Identifier: Apache-2.0
// Objects in place of bytes: the calls that every heap's reference has beside malloc and free.
//
//   auto* const made = heap.make<node>(value, next);
//   heap.destroy(made);
//
// A base class without members, one type for each reference, so that a reference takes no more room
// with it. In a template where the heap's type is a parameter it is `heap.template make<node>()`.
//
// Each call ends with a place in the source, which a checked heap reports. A parameter behind a
// pack of parameters is never deduced, so make() exists for up to four arguments, and make_at(),
// which has the place in front, for any number.
#pragma once

#include "generic_calls.hpp"

#if !defined(__CUDACC_RTC__)
#include <new>
#endif

namespace warpheap { inline namespace WARPHEAP_BACKEND {
namespace detail {

/// A concept, and no expression in construct(): in typed_calls_test.cpp nvcc 13.0 took that for
/// false of a number.
template <class T, class... Arguments>
concept made_by_parentheses = requires(void* memory, Arguments&&... arguments) {
  ::new (memory) T(static_cast<Arguments&&>(arguments)...);
};

/// A `T` at `memory`, which has room for it: by a constructor that takes the arguments, or as an
/// aggregate of them.
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

/// Base class of a heap's reference, which is `Heap` and has malloc() and free(). Any thread,
/// converged or not, as these are called.
template <class Heap>
class typed_calls {
 public:
  /// A new `T`, made of the arguments as `new T(arguments...)` makes it, or `new T{arguments...}`
  /// if it is an aggregate; without arguments its value is `T()`. nullptr if there is no memory;
  /// then no constructor runs. A type that is aligned to more than malloc() aligns comes from
  /// aligned_alloc(), and does not compile if the heap has none.
  template <class T>
  WARPHEAP_DEVICE T* make(source_site site = source_site::current()) const {
    return make_at<T>(site);
  }
  /// As above, of one argument.
  template <class T, class First>
  WARPHEAP_DEVICE T* make(First&& first, source_site site = source_site::current()) const {
    return make_at<T>(site, static_cast<First&&>(first));
  }
  /// As above, of two.
  template <class T, class First, class Second>
  WARPHEAP_DEVICE T* make(First&& first, Second&& second, source_site site = source_site::current()) const {
    return make_at<T>(site, static_cast<First&&>(first), static_cast<Second&&>(second));
  }
  /// As above, of three.
  template <class T, class First, class Second, class Third>
  WARPHEAP_DEVICE T* make(First&& first, Second&& second, Third&& third,
                          source_site site = source_site::current()) const {
    return make_at<T>(site, static_cast<First&&>(first), static_cast<Second&&>(second), static_cast<Third&&>(third));
  }
  /// As above, of four.
  template <class T, class First, class Second, class Third, class Fourth>
  WARPHEAP_DEVICE T* make(First&& first, Second&& second, Third&& third, Fourth&& fourth,
                          source_site site = source_site::current()) const {
    return make_at<T>(site, static_cast<First&&>(first), static_cast<Second&&>(second), static_cast<Third&&>(third),
                      static_cast<Fourth&&>(fourth));
  }

  /// make() of any number of arguments, with the place in front.
  template <class T, class... Arguments>
  WARPHEAP_DEVICE T* make_at(source_site site, Arguments&&... arguments) const {
    void* const memory = detail::allocate<alignof(T)>(self(), sizeof(T), site);
    return memory ? detail::construct<T>(memory, static_cast<Arguments&&>(arguments)...) : nullptr;
  }

  /// Runs the destructor of what make() returned, and frees it. nullptr does nothing. `T` is the
  /// type that was made, or a base class at the same address with a virtual destructor.
  template <class T>
  WARPHEAP_DEVICE void destroy(T* object, source_site site = source_site::current()) const {
    detail::destroy_objects(self(), object, 1, site);
  }

  /// `count` objects in one block, as `new T[count]` leaves them: numbers and structures of them
  /// are not initialised, all else is by its constructor without arguments. nullptr for 0, if the
  /// bytes overflow, and if there is no memory.
  template <class T>
  WARPHEAP_DEVICE T* make_array(size_t count, source_site site = source_site::current()) const {
    if (count == 0 || count > ~size_t{0} / sizeof(T)) return nullptr;
    auto* const objects = static_cast<T*>(detail::allocate<alignof(T)>(self(), count * sizeof(T), site));
    if (objects)
      for (size_t i = 0; i < count; ++i) ::new (static_cast<void*>(objects + i)) T;
    return objects;
  }

  /// Runs the destructors of what make_array() of this count returned, the last one first, and
  /// frees it. nullptr does nothing.
  template <class T>
  WARPHEAP_DEVICE void destroy_array(T* objects, size_t count, source_site site = source_site::current()) const {
    detail::destroy_objects(self(), objects, count, site);
  }

 private:
  WARPHEAP_DEVICE Heap const& self() const { return static_cast<Heap const&>(*this); }
};

}}  // namespace warpheap::WARPHEAP_BACKEND
