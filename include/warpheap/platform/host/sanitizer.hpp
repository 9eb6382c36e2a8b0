// SPDX-License-Identifier: Apache-2.0
// Notes to the sanitizers about fibers. Without a sanitizer, everything here is empty.
//
// ThreadSanitizer: each lane is a TSan fiber. Switches carry flag 1 (no synchronization); otherwise
// they would order the lanes, and hide every race between two lanes of one OS thread. The scheduler
// itself is shared by all of them, so its functions are not instrumented (WARPHEAP_NO_TSAN) and
// keep to raw arrays: a standard container's members would be instrumented again, since GCC never
// inlines across that attribute. A race between two lanes that had the same stack one after the
// other is not seen: a test that injects one keeps both alive.
// AddressSanitizer: each switch names the stack it goes to. A heap tells it which bytes of its pool
// are blocks. Boost's own BOOST_USE_TSAN and
// BOOST_USE_ASAN need a Boost built for them.
// WARPHEAP_HOST_RACES: the calls that -fsanitize=thread inserts are ours (race_hooks.hpp), and
// ThreadSanitizer's runtime is not there. The memory model's own accesses are no lane's, so most of
// its functions are not instrumented either.
#pragma once

#include "../types.hpp"

#if defined(WARPHEAP_HOST_RACES)
#if !defined(__SANITIZE_THREAD__) && !defined(__clang__)  // which has no such macro
#error WARPHEAP_HOST_RACES needs -fsanitize=thread when compiling, not when linking
#endif
#undef __SANITIZE_THREAD__
#define WARPHEAP_NO_TSAN __attribute__((no_sanitize_thread))
#elif defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
extern "C" void AnnotateIgnoreWritesBegin(char const* file, int line);
extern "C" void AnnotateIgnoreWritesEnd(char const* file, int line);
#define WARPHEAP_NO_TSAN __attribute__((no_sanitize_thread))
#else
#define WARPHEAP_NO_TSAN
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace warpheap::host::detail {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool under_tsan = true;
/// Memory that is allocated or freed for the life of this is not taken for written then.
class tsan_pause {
 public:
  tsan_pause() { AnnotateIgnoreWritesBegin(__FILE__, __LINE__); }
  tsan_pause(tsan_pause const&) = delete;
  tsan_pause& operator=(tsan_pause const&) = delete;
  ~tsan_pause() { AnnotateIgnoreWritesEnd(__FILE__, __LINE__); }
};
WARPHEAP_NO_TSAN inline void tsan_release(void* tag) { __tsan_release(tag); }
WARPHEAP_NO_TSAN inline void tsan_acquire(void* tag) { __tsan_acquire(tag); }
#else
inline constexpr bool under_tsan = false;
struct tsan_pause {
  tsan_pause() {}
};
inline void tsan_release(void*) {}
inline void tsan_acquire(void*) {}
#endif

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool under_asan = true;
/// Keep which lane allocated and freed a block; asan_report.hpp.
void note_allowed(void const* memory, size_t bytes);
void note_forbidden(void const* memory, size_t bytes);
#else
inline constexpr bool under_asan = false;
#endif

}  // namespace warpheap::host::detail

namespace warpheap::host {

/// Whether accesses to memory that is forbidden are reported.
inline constexpr bool tracks_access = detail::under_asan;

/// Forbids or allows accesses to a range, byte by byte at its end; at its start by eights.
inline void forbid_access([[maybe_unused]] void const* memory, [[maybe_unused]] size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  detail::note_forbidden(memory, bytes);
  __asan_poison_memory_region(memory, bytes);
#endif
}
inline void allow_access([[maybe_unused]] void const* memory, [[maybe_unused]] size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(memory, bytes);
  detail::note_allowed(memory, bytes);
#endif
}

}  // namespace warpheap::host
