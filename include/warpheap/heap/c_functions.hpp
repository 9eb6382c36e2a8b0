// SPDX-License-Identifier: Apache-2.0
// A heap without C++: functions with C names, for code that a JIT compiler or another language
// generates and links with a module compiled from this header. They take the heap as the 64-bit
// number that handle() returns, and keep the promises of the members of the same names.
//
// WARPHEAP_C_FUNCTIONS(prefix, allocator) defines prefix_malloc, prefix_free, prefix_calloc,
// prefix_realloc, prefix_aligned_alloc and prefix_usable_size. With different prefixes, a program
// can have the functions of several allocators. A function that a policy does not support returns
// nullptr, or 0.
//
// `used` puts them into every module that has the macro, called or not; `inline` merges several
// copies into one. nvcc's host pass only declares them: its code would not work, and must not
// replace the host backend's functions.
#pragma once

#include "allocator.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// The reference of the heap whose handle() is `handle`.
template <class Allocator>
WARPHEAP_DEVICE Allocator ref_of(u64 handle) {
  return *reinterpret_cast<Allocator const*>(handle);
}

namespace detail {

template <class Allocator>
WARPHEAP_DEVICE void* reallocated(Allocator const& heap, void* memory, size_t bytes) {
  if constexpr (requires { heap.realloc(memory, bytes); }) return heap.realloc(memory, bytes);
  else return nullptr;
}
template <class Allocator>
WARPHEAP_DEVICE void* allocated_at(Allocator const& heap, size_t alignment, size_t bytes) {
  if constexpr (requires { heap.aligned_alloc(alignment, bytes); }) return heap.aligned_alloc(alignment, bytes);
  else return nullptr;
}
template <class Allocator>
WARPHEAP_DEVICE size_t size_at(Allocator const& heap, void const* memory) {
  if constexpr (requires { heap.usable_size(memory); }) return heap.usable_size(memory);
  else return 0;
}

}  // namespace detail
}}  // namespace warpheap::WARPHEAP_BACKEND

#if defined(__CUDACC__) && !defined(__CUDA_ARCH__)
#define WARPHEAP_C_FUNCTION(declaration, ...) extern "C" __device__ declaration;
#else
#define WARPHEAP_C_FUNCTION(declaration, ...) \
  extern "C" WARPHEAP_DEVICE inline __attribute__((used)) declaration { __VA_ARGS__ }
#endif

// prefix_free always returns 0: Numba and similar compilers declare every function with a result,
// and a PTX linker rejects a declaration that differs from the definition.
#define WARPHEAP_C_FUNCTIONS(prefix, ...)                                                                            \
  WARPHEAP_C_FUNCTION(void* prefix##_malloc(unsigned long long heap, unsigned long long bytes),                      \
                      return warpheap::ref_of<__VA_ARGS__>(heap).malloc(bytes);)                                     \
  WARPHEAP_C_FUNCTION(int prefix##_free(unsigned long long heap, void* memory),                                      \
                      warpheap::ref_of<__VA_ARGS__>(heap).free(memory);                                              \
                      return 0;)                                                                                     \
  WARPHEAP_C_FUNCTION(                                                                                               \
      void* prefix##_calloc(unsigned long long heap, unsigned long long count, unsigned long long size),             \
      return warpheap::ref_of<__VA_ARGS__>(heap).calloc(count, size);)                                               \
  WARPHEAP_C_FUNCTION(void* prefix##_realloc(unsigned long long heap, void* memory, unsigned long long bytes),       \
                      return warpheap::detail::reallocated(warpheap::ref_of<__VA_ARGS__>(heap), memory, bytes);)     \
  WARPHEAP_C_FUNCTION(                                                                                               \
      void* prefix##_aligned_alloc(unsigned long long heap, unsigned long long alignment, unsigned long long bytes), \
      return warpheap::detail::allocated_at(warpheap::ref_of<__VA_ARGS__>(heap), alignment, bytes);)                 \
  WARPHEAP_C_FUNCTION(unsigned long long prefix##_usable_size(unsigned long long heap, void* memory),                \
                      return warpheap::detail::size_at(warpheap::ref_of<__VA_ARGS__>(heap), memory);)
