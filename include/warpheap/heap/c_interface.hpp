// The default heap without C++: functions with C names, for code that a JIT compiler or another
// language generates and links with a module compiled from this header. They take the heap as the
// 64-bit number that heap::handle() returns, and keep the promises of the members of the same
// names.
//
// `used` puts them into every module that includes this header, called or not; `inline` merges
// several copies into one. nvcc's host pass only declares them: what it would compile is no working
// code, and must not replace the host backend's functions.
#pragma once

#include "default_heap.hpp"

#if defined(__CUDACC__) && !defined(__CUDA_ARCH__)
#define WARPHEAP_C_FUNCTION(declaration, ...) extern "C" __device__ declaration;
#else
#define WARPHEAP_C_FUNCTION(declaration, ...) \
  extern "C" WARPHEAP_DEVICE inline __attribute__((used)) declaration { __VA_ARGS__ }
#endif

namespace warpheap::inline WARPHEAP_BACKEND {

/// The heap whose handle() is `handle`.
WARPHEAP_DEVICE inline heap_ref heap_of(u64 handle) { return *reinterpret_cast<heap_ref const*>(handle); }

}  // namespace warpheap::inline WARPHEAP_BACKEND

WARPHEAP_C_FUNCTION(void* warpheap_malloc(unsigned long long heap, unsigned long long bytes),
                    return warpheap::heap_of(heap).malloc(bytes);)

/// Always returns 0: Numba and others like it declare every function as one that returns something,
/// and a PTX linker refuses a declaration that differs from the definition.
WARPHEAP_C_FUNCTION(int warpheap_free(unsigned long long heap, void* memory), warpheap::heap_of(heap).free(memory);
                    return 0;)

WARPHEAP_C_FUNCTION(void* warpheap_calloc(unsigned long long heap, unsigned long long count, unsigned long long size),
                    return warpheap::heap_of(heap).calloc(count, size);)

WARPHEAP_C_FUNCTION(void* warpheap_realloc(unsigned long long heap, void* memory, unsigned long long bytes),
                    return warpheap::heap_of(heap).realloc(memory, bytes);)

WARPHEAP_C_FUNCTION(void* warpheap_aligned_alloc(unsigned long long heap, unsigned long long alignment,
                                                 unsigned long long bytes),
                    return warpheap::heap_of(heap).aligned_alloc(alignment, bytes);)

#undef WARPHEAP_C_FUNCTION
