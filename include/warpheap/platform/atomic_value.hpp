// SPDX-License-Identifier: Apache-2.0
// What an atomic_ref may refer to, on either backend:
//
//   T                          operations beside load, store, exchange and compare_exchange
//   4- or 8-byte integer       fetch_add fetch_sub fetch_min fetch_max fetch_or fetch_and fetch_xor
//   float, double              fetch_add fetch_sub
//   pointer to an object       fetch_add fetch_sub, in elements
//   other pointer              none
//
// Integers wrap around. compare_exchange compares bits: 0.0 differs from -0.0, and a NaN equals
// itself. On a GPU fetch_add and fetch_sub of a float take subnormal numbers for zeros. Floats have
// no fetch_min and fetch_max: no instruction does it, and the caller must say which of two zeros or
// NaNs is the smaller, in a loop of compare_exchange.
//
// Every order and scope goes with every operation. A load has no release and a store no acquire: a
// load that names it is an acquire load, a store that names it a release store.
#pragma once

#include "simt_backend.hpp"

namespace warpheap {

template <class T>
concept atomic_integer = same_type<T, int> || same_type<T, unsigned int> || same_type<T, long> ||
    same_type<T, unsigned long> || same_type<T, long long> || same_type<T, unsigned long long>;

template <class T>
concept atomic_float = same_type<T, float> || same_type<T, double>;

template <class T>
inline constexpr bool is_pointer_type = false;
template <class T>
inline constexpr bool is_pointer_type<T*> = true;

template <class T>
concept atomic_value = atomic_integer<T> || atomic_float<T> || is_pointer_type<T>;

/// What load_pair() sees.
struct word_pair {
  u64 first, second;
};

namespace atomic_detail {

/// The type that fetch_add adds, and how many units of the word one step is: 1 for a number, the
/// object's bytes for a pointer.
template <class T>
struct atomic_step {
  static_assert(atomic_value<T>,
                "atomic_ref<T>: T is a 4- or 8-byte integer, float, double or a pointer, and not const");
  using type = T;
  static constexpr bool counts = atomic_integer<T> || atomic_float<T>;
  WARPHEAP_HOST_DEVICE static constexpr u64 units() { return 1; }
};
template <class T>
struct atomic_step<T*> {
  using type = i64;
  static constexpr bool counts = requires {
    sizeof(T[1]);  // sizeof(void) is an extension, an array of void is none
  };
  WARPHEAP_HOST_DEVICE static constexpr u64 units() { return sizeof(T); }
};

template <bool Wide>
struct word_of_bytes {
  using type = u32;
};
template <>
struct word_of_bytes<true> {
  using type = u64;
};

/// The word that holds a T.
template <class T>
using atomic_word = typename word_of_bytes<sizeof(T) == 8>::type;

/// The bits of `from` as another type of the same size.
template <class To, class From>
WARPHEAP_HOST_DEVICE inline To same_bits(From from) {
#if defined(__CUDA_ARCH__)  // before CUDA 12.4 device code has no bit cast
  To to;
  memcpy(&to, &from, sizeof(To));
  return to;
#else
  return __builtin_bit_cast(To, from);
#endif
}

// A type that is refused has no word. Another function reports it, once; these report nothing.
template <class T>
WARPHEAP_HOST_DEVICE inline atomic_word<T> to_word([[maybe_unused]] T value) {
  if constexpr (atomic_value<T>) return same_bits<atomic_word<T>>(value);
  else return {};
}
template <class T>
WARPHEAP_HOST_DEVICE inline T from_word([[maybe_unused]] atomic_word<T> word) {
  if constexpr (atomic_value<T>) return same_bits<T>(word);
  else return {};
}

// Each is true for a type that has the operations; for any other it gives the user one sentence,
// and is false.
template <class T>
WARPHEAP_HOST_DEVICE constexpr bool counts() {
  static_assert(atomic_step<T>::counts, "fetch_add and fetch_sub take integers, floats and pointers to objects");
  return atomic_step<T>::counts;
}
template <class T>
WARPHEAP_HOST_DEVICE constexpr bool has_bits() {
  static_assert(atomic_integer<T>, "fetch_or, fetch_and and fetch_xor take integers");
  return atomic_integer<T>;
}
template <class T>
WARPHEAP_HOST_DEVICE constexpr bool has_extremes() {
  static_assert(atomic_integer<T>, "fetch_min and fetch_max take integers; for floats, loop over compare_exchange");
  return atomic_integer<T>;
}

}  // namespace atomic_detail

}  // namespace warpheap
