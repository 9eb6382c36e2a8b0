// SPDX-License-Identifier: Apache-2.0
// The functions that g++ -fsanitize=thread calls before every plain access and in place of atomics.
// The program is linked without that option, so ThreadSanitizer's runtime is not there.
//
// So the compiler reports every plain access in the program, to objects of any type, and each has
// the address that it returns to. Those of lanes to device memory are checked. The atomics of
// atomic_ref reach the checker with the memory model's decisions, and are only made here. Calls of
// memcpy, memset and the like are functions of the C library, which no compiler option reports.
#pragma once

#include "race_checker.hpp"

// Fences: the model knows them, unlike ThreadSanitizer, for which GCC warns.
#pragma GCC diagnostic ignored "-Wtsan"

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the compiler's names

#define WARPHEAP_HOOK extern "C" [[gnu::used]] WARPHEAP_NO_TSAN inline
#define WARPHEAP_CHECK_PLAIN(KIND, ADDRESS, BYTES)                                                      \
  warpheap::host::detail::check_plain(ADDRESS, BYTES, warpheap::host::detail::touch_kind::plain_##KIND, \
                                      __builtin_return_address(0))
#define WARPHEAP_PLAIN_HOOKS(BYTES)                                                                    \
  WARPHEAP_HOOK void __tsan_read##BYTES(void* address) { WARPHEAP_CHECK_PLAIN(read, address, BYTES); } \
  WARPHEAP_HOOK void __tsan_write##BYTES(void* address) { WARPHEAP_CHECK_PLAIN(write, address, BYTES); }

// With --param tsan-distinguish-volatile=1.
#define WARPHEAP_VOLATILE_HOOKS(BYTES)                                                          \
  WARPHEAP_HOOK void __tsan_volatile_read##BYTES(void* address) {                               \
    warpheap::host::detail::check_volatile(address, BYTES, false, __builtin_return_address(0)); \
  }                                                                                             \
  WARPHEAP_HOOK void __tsan_volatile_write##BYTES(void* address) {                              \
    warpheap::host::detail::check_volatile(address, BYTES, true, __builtin_return_address(0));  \
  }

WARPHEAP_VOLATILE_HOOKS(1)
WARPHEAP_VOLATILE_HOOKS(2)
WARPHEAP_VOLATILE_HOOKS(4)
WARPHEAP_VOLATILE_HOOKS(8)
WARPHEAP_VOLATILE_HOOKS(16)
WARPHEAP_PLAIN_HOOKS(1)
WARPHEAP_PLAIN_HOOKS(2)
WARPHEAP_PLAIN_HOOKS(4)
WARPHEAP_PLAIN_HOOKS(8)
WARPHEAP_PLAIN_HOOKS(16)
WARPHEAP_HOOK void __tsan_read_range(void* address, long bytes) {
  WARPHEAP_CHECK_PLAIN(read, address, static_cast<warpheap::u64>(bytes));
}
WARPHEAP_HOOK void __tsan_write_range(void* address, long bytes) {
  WARPHEAP_CHECK_PLAIN(write, address, static_cast<warpheap::u64>(bytes));
}
WARPHEAP_HOOK void __tsan_vptr_update(void* address, void*) { WARPHEAP_CHECK_PLAIN(write, address, sizeof(void*)); }

WARPHEAP_HOOK void __tsan_init() {}
WARPHEAP_HOOK void __tsan_func_entry(void*) {}
WARPHEAP_HOOK void __tsan_func_exit(void*) {}

// Orders that are no constants: GCC takes each for the strongest.
#define WARPHEAP_CHANGE_HOOK(BITS, WORD, NAME)                                              \
  WARPHEAP_HOOK WORD __tsan_atomic##BITS##_##NAME(void volatile* object, WORD value, int) { \
    return __atomic_##NAME(static_cast<volatile WORD*>(object), value, __ATOMIC_SEQ_CST);   \
  }
#define WARPHEAP_COMPARE_HOOK(BITS, WORD, STRENGTH, IS_WEAK)                                                       \
  WARPHEAP_HOOK bool __tsan_atomic##BITS##_compare_exchange_##STRENGTH(void volatile* object, void* expected,      \
                                                                       WORD desired, int, int) {                   \
    return __atomic_compare_exchange_n(static_cast<volatile WORD*>(object), static_cast<WORD*>(expected), desired, \
                                       IS_WEAK, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                               \
  }
#define WARPHEAP_ATOMIC_HOOKS(BITS, WORD)                                                      \
  WARPHEAP_HOOK WORD __tsan_atomic##BITS##_load(void const volatile* object, int) {            \
    return __atomic_load_n(static_cast<WORD const volatile*>(object), __ATOMIC_SEQ_CST);       \
  }                                                                                            \
  WARPHEAP_HOOK void __tsan_atomic##BITS##_store(void volatile* object, WORD value, int how) { \
    auto* const word = static_cast<volatile WORD*>(object);                                    \
    if (how == __ATOMIC_SEQ_CST) __atomic_store_n(word, value, __ATOMIC_SEQ_CST);              \
    else __atomic_store_n(word, value, __ATOMIC_RELEASE);                                      \
  }                                                                                            \
  WARPHEAP_HOOK WORD __tsan_atomic##BITS##_exchange(void volatile* object, WORD value, int) {  \
    return __atomic_exchange_n(static_cast<volatile WORD*>(object), value, __ATOMIC_SEQ_CST);  \
  }                                                                                            \
  WARPHEAP_CHANGE_HOOK(BITS, WORD, fetch_add)                                                  \
  WARPHEAP_CHANGE_HOOK(BITS, WORD, fetch_sub)                                                  \
  WARPHEAP_CHANGE_HOOK(BITS, WORD, fetch_and)                                                  \
  WARPHEAP_CHANGE_HOOK(BITS, WORD, fetch_or)                                                   \
  WARPHEAP_CHANGE_HOOK(BITS, WORD, fetch_xor)                                                  \
  WARPHEAP_CHANGE_HOOK(BITS, WORD, fetch_nand)                                                 \
  WARPHEAP_COMPARE_HOOK(BITS, WORD, strong, false)                                             \
  WARPHEAP_COMPARE_HOOK(BITS, WORD, weak, true)

WARPHEAP_ATOMIC_HOOKS(8, unsigned char)
WARPHEAP_ATOMIC_HOOKS(16, unsigned short)
WARPHEAP_ATOMIC_HOOKS(32, unsigned)
WARPHEAP_ATOMIC_HOOKS(64, unsigned long)
WARPHEAP_HOOK void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
WARPHEAP_HOOK void __tsan_atomic_signal_fence(int) { __atomic_signal_fence(__ATOMIC_SEQ_CST); }

// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

#undef WARPHEAP_HOOK
#undef WARPHEAP_CHECK_PLAIN
#undef WARPHEAP_PLAIN_HOOKS
#undef WARPHEAP_VOLATILE_HOOKS
#undef WARPHEAP_CHANGE_HOOK
#undef WARPHEAP_COMPARE_HOOK
#undef WARPHEAP_ATOMIC_HOOKS
