// SPDX-License-Identifier: Apache-2.0
// One atomic PTX instruction on a word of global memory, in every order and scope; with block scope
// on one of shared memory too.
//
// The compiler's __nv_atomic_* built-ins say the same, but through a pointer loaded from memory
// they compile (nvcc 13.0, sm_90) to a generic atomic with a shared-memory path beside it; naming
// .global gives one ATOMG. Read the SASS before changing a line here.
//
// PTX has no seq_cst operation: C++'s maps to fence.sc before the acquire-release one.
#pragma once

#include "../types.hpp"

namespace warpheap::cuda_backend::ptx {

// The formatter would cut each instruction from its operands.
// clang-format off

// The scope's three spellings of one instruction. `before` and `after` are the text around scope
// and space. What is of a thread block alone may lie in shared memory.
#define WARPHEAP_PTX_SCOPED(before, space, after, ...)                                              \
  do {                                                                                              \
    if constexpr (Scope == scope::block) asm volatile(before ".cta" after __VA_ARGS__);             \
    else if constexpr (Scope == scope::device) asm volatile(before ".gpu" space after __VA_ARGS__); \
    else asm volatile(before ".sys" space after __VA_ARGS__);                                       \
  } while (false)

// One read-modify-write in all its orders.
#define WARPHEAP_PTX_RMW_ORDERED(how, after, ...)                                                    \
  switch (how) {                                                                                     \
    case order::relaxed:                                                                             \
    case order::fenced: WARPHEAP_PTX_SCOPED("atom.relaxed", ".global", after, __VA_ARGS__); break;              \
    case order::acquire: WARPHEAP_PTX_SCOPED("atom.acquire", ".global", after, __VA_ARGS__); break;             \
    case order::release: WARPHEAP_PTX_SCOPED("atom.release", ".global", after, __VA_ARGS__); break;             \
    case order::seq_cst: WARPHEAP_PTX_SCOPED("fence.sc", "", ";", ::: "memory"); [[fallthrough]];        \
    case order::acq_rel: WARPHEAP_PTX_SCOPED("atom.acq_rel", ".global", after, __VA_ARGS__); break;             \
  }

// `function` reads and writes a `type`, which asm calls `letter`.
#define WARPHEAP_PTX_RMW(function, type, letter, instruction)                                       \
  template <scope Scope>                                                                            \
  WARPHEAP_DEVICE inline type function(size_t address, type operand, order how) {                   \
    type old;                                                                                       \
    WARPHEAP_PTX_RMW_ORDERED(how, "." instruction " %0, [%1], %2;",                          \
                             : "=" letter(old) : "l"(address), letter(operand) : "memory")          \
    return old;                                                                                     \
  }

WARPHEAP_PTX_RMW(exchange, u32, "r", "exch.b32")
WARPHEAP_PTX_RMW(exchange, u64, "l", "exch.b64")
WARPHEAP_PTX_RMW(add, u32, "r", "add.u32")
WARPHEAP_PTX_RMW(add, u64, "l", "add.u64")
WARPHEAP_PTX_RMW(add, float, "f", "add.f32")
WARPHEAP_PTX_RMW(add, double, "d", "add.f64")
WARPHEAP_PTX_RMW(min, u32, "r", "min.u32")
WARPHEAP_PTX_RMW(min, i32, "r", "min.s32")
WARPHEAP_PTX_RMW(min, u64, "l", "min.u64")
WARPHEAP_PTX_RMW(min, i64, "l", "min.s64")
WARPHEAP_PTX_RMW(max, u32, "r", "max.u32")
WARPHEAP_PTX_RMW(max, i32, "r", "max.s32")
WARPHEAP_PTX_RMW(max, u64, "l", "max.u64")
WARPHEAP_PTX_RMW(max, i64, "l", "max.s64")
WARPHEAP_PTX_RMW(bit_or, u32, "r", "or.b32")
WARPHEAP_PTX_RMW(bit_or, u64, "l", "or.b64")
WARPHEAP_PTX_RMW(bit_and, u32, "r", "and.b32")
WARPHEAP_PTX_RMW(bit_and, u64, "l", "and.b64")
WARPHEAP_PTX_RMW(bit_xor, u32, "r", "xor.b32")
WARPHEAP_PTX_RMW(bit_xor, u64, "l", "xor.b64")

#define WARPHEAP_PTX_REST(type, letter, bits)                                                                          \
  /* PTX has one order for both outcomes; the failure's is never stronger than the success's. */                       \
  template <scope Scope>                                                                                               \
  WARPHEAP_DEVICE inline type compare_exchange(size_t address, type expected, type desired, order how) {               \
    type old;                                                                                                          \
    WARPHEAP_PTX_RMW_ORDERED(how, ".cas.b" bits " %0, [%1], %2, %3;",                                           \
                             : "=" letter(old) : "l"(address), letter(expected), letter(desired) : "memory")           \
    return old;                                                                                                        \
  }                                                                                                                    \
  template <scope Scope>                                                                                               \
  WARPHEAP_DEVICE inline void load(type& value, size_t address, order how) {                                           \
    switch (how) {                                                                                                     \
      case order::relaxed:                                                                                             \
        WARPHEAP_PTX_SCOPED("ld.relaxed", ".global", ".u" bits " %0, [%1];", : "=" letter(value) : "l"(address) : "memory"); \
        break;                                                                                                         \
      case order::seq_cst: WARPHEAP_PTX_SCOPED("fence.sc", "", ";", ::: "memory"); [[fallthrough]];                        \
      default:                                                                                                         \
        WARPHEAP_PTX_SCOPED("ld.acquire", ".global", ".u" bits " %0, [%1];", : "=" letter(value) : "l"(address) : "memory"); \
    }                                                                                                                  \
  }                                                                                                                    \
  template <scope Scope>                                                                                               \
  WARPHEAP_DEVICE inline void store(size_t address, type value, order how) {                                           \
    switch (how) {                                                                                                     \
      case order::relaxed:                                                                                             \
      case order::fenced:                                                                                              \
        WARPHEAP_PTX_SCOPED("st.relaxed", ".global", ".u" bits " [%0], %1;", ::"l"(address), letter(value) : "memory");    \
        break;                                                                                                         \
      case order::seq_cst: WARPHEAP_PTX_SCOPED("fence.sc", "", ";", ::: "memory"); [[fallthrough]];                        \
      default:                                                                                                         \
        WARPHEAP_PTX_SCOPED("st.release", ".global", ".u" bits " [%0], %1;", ::"l"(address), letter(value) : "memory");    \
    }                                                                                                                  \
  }

WARPHEAP_PTX_REST(u32, "r", "32")
WARPHEAP_PTX_REST(u64, "l", "64")

/// Two relaxed loads by one instruction: PTX orders the parts of a vector in no way.
WARPHEAP_DEVICE inline void load_pair(u64& first, u64& second, size_t address) {
  asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(first), "=l"(second) : "l"(address) : "memory");
}

// clang-format on

#undef WARPHEAP_PTX_REST
#undef WARPHEAP_PTX_RMW
#undef WARPHEAP_PTX_RMW_ORDERED
#undef WARPHEAP_PTX_SCOPED

}  // namespace warpheap::cuda_backend::ptx
