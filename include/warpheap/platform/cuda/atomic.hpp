// Atomics on global memory, one PTX instruction each. The compiler's __nv_atomic_* built-ins say the same, but through a
// pointer loaded from memory they compile (nvcc 13.0, sm_90) to a generic atomic with a shared-memory path beside it;
// naming .global gives one ATOMG. Read the SASS before changing a line here.
//
// PTX has no seq_cst operation: C++'s maps to fence.sc before the acquire-release one.
#pragma once

#include "../types.hpp"

namespace warpheap::cuda {

/// Atomic access to a 4- or 8-byte integer in global memory. `Scope` says who else may access it at the same time.
template <class T, scope Scope = scope::device>
class atomic_ref {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "atomic_ref takes 4- and 8-byte integers");

 public:
  WARPHEAP_DEVICE explicit atomic_ref(T& object) : address_{__cvta_generic_to_global(&object)} {}

  WARPHEAP_DEVICE T load(order) const;
  WARPHEAP_DEVICE void store(T value, order) const;
  WARPHEAP_DEVICE T exchange(T value, order) const;
  WARPHEAP_DEVICE T fetch_add(T value, order) const;
  WARPHEAP_DEVICE T fetch_or(T value, order) const;
  WARPHEAP_DEVICE T fetch_and(T value, order) const;
  WARPHEAP_DEVICE T fetch_xor(T value, order) const;
  WARPHEAP_DEVICE T fetch_sub(T value, order how) const { return fetch_add(static_cast<T>(0) - value, how); }

  /// Stores `desired` if the object equals `expected`; else puts what it holds into `expected`. Never fails spuriously.
  WARPHEAP_DEVICE bool compare_exchange(T& expected, T desired, order success, order failure) const;

 private:
  static constexpr bool wide = sizeof(T) == 8;
  size_t address_;
};

/// Orders everything before it with everything after it, for all threads of the device: the one fence that handing a
/// slab to another class needs.
WARPHEAP_DEVICE inline void recycling_fence() { asm volatile("fence.sc.gpu;" ::: "memory"); }

/// What came before it happens before whoever acquires from a later operation of this thread with order::fenced.
WARPHEAP_DEVICE inline void release_fence() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("fence.release.gpu;" ::: "memory");
#else
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
#endif
}

// The formatter would cut each instruction from its operands.
// clang-format off

// The scope's three spellings of one instruction. `before` and `after` are the text around the scope.
#define WARPHEAP_PTX_SCOPED(before, after, ...)                                               \
  do {                                                                                        \
    if constexpr (Scope == scope::block) asm volatile(before ".cta" after __VA_ARGS__);       \
    else if constexpr (Scope == scope::device) asm volatile(before ".gpu" after __VA_ARGS__); \
    else asm volatile(before ".sys" after __VA_ARGS__);                                       \
  } while (false)

// One read-modify-write in all its orders.
#define WARPHEAP_PTX_RMW_ORDERED(how, after, ...)                                                    \
  switch (how) {                                                                                     \
    case order::relaxed:                                                                             \
    case order::fenced: WARPHEAP_PTX_SCOPED("atom.relaxed", after, __VA_ARGS__); break;              \
    case order::acquire: WARPHEAP_PTX_SCOPED("atom.acquire", after, __VA_ARGS__); break;             \
    case order::release: WARPHEAP_PTX_SCOPED("atom.release", after, __VA_ARGS__); break;             \
    case order::seq_cst: WARPHEAP_PTX_SCOPED("fence.sc", ";", ::: "memory"); [[fallthrough]];        \
    case order::acq_rel: WARPHEAP_PTX_SCOPED("atom.acq_rel", after, __VA_ARGS__); break;             \
  }

#define WARPHEAP_PTX_RMW(name, wide_type, narrow_type)                                          \
  template <class T, scope Scope>                                                               \
  WARPHEAP_DEVICE T atomic_ref<T, Scope>::name(T value, order how) const {                      \
    if constexpr (wide) {                                                                       \
      u64 old, operand = static_cast<u64>(value);                                               \
      WARPHEAP_PTX_RMW_ORDERED(how, wide_type " %0, [%1], %2;",                                 \
                               : "=l"(old) : "l"(address_), "l"(operand) : "memory")            \
      return static_cast<T>(old);                                                               \
    } else {                                                                                    \
      u32 old, operand = static_cast<u32>(value);                                               \
      WARPHEAP_PTX_RMW_ORDERED(how, narrow_type " %0, [%1], %2;",                               \
                               : "=r"(old) : "l"(address_), "r"(operand) : "memory")            \
      return static_cast<T>(old);                                                               \
    }                                                                                           \
  }

WARPHEAP_PTX_RMW(exchange, ".global.exch.b64", ".global.exch.b32")
WARPHEAP_PTX_RMW(fetch_add, ".global.add.u64", ".global.add.u32")
WARPHEAP_PTX_RMW(fetch_or, ".global.or.b64", ".global.or.b32")
WARPHEAP_PTX_RMW(fetch_and, ".global.and.b64", ".global.and.b32")
WARPHEAP_PTX_RMW(fetch_xor, ".global.xor.b64", ".global.xor.b32")

template <class T, scope Scope>
WARPHEAP_DEVICE bool atomic_ref<T, Scope>::compare_exchange(T& expected, T desired, order success, order) const {
  // PTX has one order for both outcomes; the failure's is never stronger than the success's.
  T const wanted = expected;
  if constexpr (wide) {
    u64 old, compare = static_cast<u64>(wanted), operand = static_cast<u64>(desired);
    WARPHEAP_PTX_RMW_ORDERED(success, ".global.cas.b64 %0, [%1], %2, %3;",
                             : "=l"(old) : "l"(address_), "l"(compare), "l"(operand) : "memory")
    expected = static_cast<T>(old);
  } else {
    u32 old, compare = static_cast<u32>(wanted), operand = static_cast<u32>(desired);
    WARPHEAP_PTX_RMW_ORDERED(success, ".global.cas.b32 %0, [%1], %2, %3;",
                             : "=r"(old) : "l"(address_), "r"(compare), "r"(operand) : "memory")
    expected = static_cast<T>(old);
  }
  return expected == wanted;
}

#define WARPHEAP_PTX_LOAD(width, type)                                                                          \
  switch (how) {                                                                                                \
    case order::relaxed: WARPHEAP_PTX_SCOPED("ld.relaxed", type, : "=" width(value) : "l"(address_) : "memory"); break; \
    case order::seq_cst: WARPHEAP_PTX_SCOPED("fence.sc", ";", ::: "memory"); [[fallthrough]];                   \
    default: WARPHEAP_PTX_SCOPED("ld.acquire", type, : "=" width(value) : "l"(address_) : "memory"); break;     \
  }

template <class T, scope Scope>
WARPHEAP_DEVICE T atomic_ref<T, Scope>::load(order how) const {
  if constexpr (wide) {
    u64 value;
    WARPHEAP_PTX_LOAD("l", ".global.u64 %0, [%1];")
    return static_cast<T>(value);
  } else {
    u32 value;
    WARPHEAP_PTX_LOAD("r", ".global.u32 %0, [%1];")
    return static_cast<T>(value);
  }
}

#define WARPHEAP_PTX_STORE(width, type)                                                                            \
  switch (how) {                                                                                                   \
    case order::relaxed:                                                                                           \
    case order::fenced: WARPHEAP_PTX_SCOPED("st.relaxed", type, ::"l"(address_), width(operand) : "memory"); break; \
    case order::seq_cst: WARPHEAP_PTX_SCOPED("fence.sc", ";", ::: "memory"); [[fallthrough]];                      \
    default: WARPHEAP_PTX_SCOPED("st.release", type, ::"l"(address_), width(operand) : "memory"); break;           \
  }

template <class T, scope Scope>
WARPHEAP_DEVICE void atomic_ref<T, Scope>::store(T value, order how) const {
  if constexpr (wide) {
    u64 const operand = static_cast<u64>(value);
    WARPHEAP_PTX_STORE("l", ".global.u64 [%0], %1;")
  } else {
    u32 const operand = static_cast<u32>(value);
    WARPHEAP_PTX_STORE("r", ".global.u32 [%0], %1;")
  }
}

// clang-format on

#undef WARPHEAP_PTX_STORE
#undef WARPHEAP_PTX_LOAD
#undef WARPHEAP_PTX_RMW
#undef WARPHEAP_PTX_RMW_ORDERED
#undef WARPHEAP_PTX_SCOPED

}  // namespace warpheap::cuda
