// SPDX-License-Identifier: Apache-2.0
// Atomics on global memory: each operation is one instruction of ptx_atomic.hpp. The reference
// converts the generic address once. Objects in shared memory have no global address, and are for
// atomics of block scope alone, which take a generic one; objects in local memory for none.
#pragma once

#include "../atomic_value.hpp"
#include "ptx_atomic.hpp"

namespace warpheap::cuda_backend {

/// Atomic access to an integer, float or pointer in global memory, or in shared memory with block
/// scope; atomic_value.hpp says which have which operations. `Scope` names the threads that may
/// access it at the same time.
template <class T, scope Scope = scope::device>
class atomic_ref {
  using word = atomic_detail::atomic_word<T>;
  using step = typename atomic_detail::atomic_step<T>::type;

 public:
  WARPHEAP_DEVICE explicit atomic_ref(T& object)
      : address_{Scope == scope::block ? reinterpret_cast<size_t>(&object) : __cvta_generic_to_global(&object)} {}

  WARPHEAP_DEVICE T load(order how) const {
    word value;
    ptx::load<Scope>(value, address_, how);
    return atomic_detail::from_word<T>(value);
  }

  WARPHEAP_DEVICE void store(T value, order how) const {
    ptx::store<Scope>(address_, atomic_detail::to_word(value), how);
  }

  WARPHEAP_DEVICE T exchange(T value, order how) const {
    return atomic_detail::from_word<T>(ptx::exchange<Scope>(address_, atomic_detail::to_word(value), how));
  }

  /// Stores `desired` if the object equals `expected`; else puts what it holds into `expected`.
  /// Never fails spuriously.
  WARPHEAP_DEVICE bool compare_exchange(T& expected, T desired, order success, order) const {
    word const wanted = atomic_detail::to_word(expected);
    word const found = ptx::compare_exchange<Scope>(address_, wanted, atomic_detail::to_word(desired), success);
    expected = atomic_detail::from_word<T>(found);
    return found == wanted;
  }

  WARPHEAP_DEVICE T fetch_add(step value, order how) const {
    if constexpr (!atomic_detail::counts<T>()) return {};
    else if constexpr (atomic_float<T>) return ptx::add<Scope>(address_, value, how);
    else return atomic_detail::from_word<T>(ptx::add<Scope>(address_, units(value), how));
  }

  WARPHEAP_DEVICE T fetch_sub(step value, order how) const {
    if constexpr (!atomic_detail::counts<T>()) return {};
    else if constexpr (atomic_float<T>) return ptx::add<Scope>(address_, -value, how);
    else return atomic_detail::from_word<T>(ptx::add<Scope>(address_, 0 - units(value), how));
  }

  WARPHEAP_DEVICE T fetch_min(T value, order how) const {
    if constexpr (!atomic_detail::has_extremes<T>()) return {};
    else return static_cast<T>(ptx::min<Scope>(address_, with_sign(value), how));
  }

  WARPHEAP_DEVICE T fetch_max(T value, order how) const {
    if constexpr (!atomic_detail::has_extremes<T>()) return {};
    else return static_cast<T>(ptx::max<Scope>(address_, with_sign(value), how));
  }

  WARPHEAP_DEVICE T fetch_or(T value, order how) const {
    if constexpr (!atomic_detail::has_bits<T>()) return {};
    else return atomic_detail::from_word<T>(ptx::bit_or<Scope>(address_, atomic_detail::to_word(value), how));
  }

  WARPHEAP_DEVICE T fetch_and(T value, order how) const {
    if constexpr (!atomic_detail::has_bits<T>()) return {};
    else return atomic_detail::from_word<T>(ptx::bit_and<Scope>(address_, atomic_detail::to_word(value), how));
  }

  WARPHEAP_DEVICE T fetch_xor(T value, order how) const {
    if constexpr (!atomic_detail::has_bits<T>()) return {};
    else return atomic_detail::from_word<T>(ptx::bit_xor<Scope>(address_, atomic_detail::to_word(value), how));
  }

 private:
  /// A step in units of the word.
  WARPHEAP_DEVICE static word units(step value) {
    return static_cast<word>(value) * static_cast<word>(atomic_detail::atomic_step<T>::units());
  }

  /// `value` as one of the four types that min and max know.
  WARPHEAP_DEVICE static auto with_sign(T value) {
    if constexpr (static_cast<T>(-1) > static_cast<T>(0)) return static_cast<word>(value);
    else if constexpr (sizeof(T) == 8) return static_cast<i64>(value);
    else return static_cast<i32>(value);
  }

  size_t address_;
};

/// The word at `words`, which is aligned to 16 bytes, and the next one: two relaxed loads, in any
/// order, by one instruction.
WARPHEAP_DEVICE inline word_pair load_pair(u64* words) {
  word_pair seen;
  ptx::load_pair(seen.first, seen.second, __cvta_generic_to_global(words));
  return seen;
}

/// Orders everything before it with everything after it, for all threads of the device: the one
/// fence that handing a slab to another class needs.
WARPHEAP_DEVICE inline void full_fence() { asm volatile("fence.sc.gpu;" ::: "memory"); }

/// Everything before it happens before what follows an acquire of a later order::fenced operation
/// of this thread.
WARPHEAP_DEVICE inline void release_fence() {
  // An older ptxas does not know this fence, nor does the PTX of an older clang beside a newer
  // CUDA.
#if __CUDA_ARCH__ >= 900 && defined(__CUDACC_VER_MAJOR__) && WARPHEAP_CUDA_VERSION >= 1208
  asm volatile("fence.release.gpu;" ::: "memory");
#else
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
#endif
}

}  // namespace warpheap::cuda_backend
