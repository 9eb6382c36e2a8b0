// SPDX-License-Identifier: Apache-2.0
// The names of C and C++ in device code, served by the heap that override_heap binds: malloc, free,
// new, delete, and those that CUDA lacks in device code: calloc, realloc, aligned_alloc, and new
// with std::nothrow_t. As with CUDA's heap, and as C++ requires of new, a block of 0 bytes has its
// own address.
//
// A definition of such a name that only nvcc's device pass sees serves device code alone, and host
// code is untouched. With -rdc=true it also serves device code that was compiled without this
// header. (Without -rdc=true such code still calls CUDA's function.)
//
// With -rdc=true a unit compiled without this header calls three names: malloc, free and
// __cuda_syscall_aligned_malloc. nvcc turns every new and delete into calls of these. ptxas treats
// the three as CUDA's own functions:
//
//   override.N1  From sm_80 on, a caller keeps values across such a call in all of R32 and above. A
//       call of any other function preserves only some of these: R36-39, R44-47 and so on. Of
//       R0-R31, of the uniform registers and of the convergence barriers, both kinds of call
//       preserve the same ones: R16-19, R22-31, UR36 and above, B6 and above.
//   override.N2  So no function that these names call, directly or not, may use a register above
//       R31. ptxas preserves the others.
//
// override.N1 was read off the machine code of callers that hold 90 values (ptxas 12.9 and 13.0,
// sm_75 to sm_120). With -rdc=true WARPHEAP_DEVICE ensures override.N2 for each function;
// scripts/check_override.py checks linked programs.
#pragma once

#if defined(__CUDACC_RTC__)
#error "override.hpp is for nvcc; code for NVRTC takes a heap_ref, or calls the functions of c_interface.hpp"
#include <compilation_stops_here>
#elif defined(__CUDACC_RDC__) && __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ < 1209
#error "override.hpp with -rdc=true needs CUDA 12.9 or newer, where a function can bound its own registers"
#include <compilation_stops_here>
#elif defined(__clang__) && defined(__CUDA__)
#error "override.hpp is for nvcc: clang defines new and delete of device code itself; give kernels a heap_ref"
#include <compilation_stops_here>
#endif

#include "device_heap.hpp"

#if !defined(__CUDACC_RTC__)
#include <cstdlib>
#include <new>
#endif

#if defined(__CUDA_ARCH__)

#define WARPHEAP_DEVICE_NAME inline WARPHEAP_DEVICE
// Called by device code compiled without this header: emitted even if this unit has no kernel.
#if defined(__CUDACC_RDC__)
#define WARPHEAP_DEVICE_SYSCALL inline __attribute__((used)) WARPHEAP_DEVICE
#else
#define WARPHEAP_DEVICE_SYSCALL inline WARPHEAP_DEVICE
#endif

#pragma nv_diagnostic push
// 2620 warns that they are inline, 20039 that calloc and its like become names of device code.
#pragma nv_diag_suppress 2620, 20039

WARPHEAP_DEVICE_SYSCALL void* malloc(std::size_t bytes) noexcept { return warpheap::device_heap.make(bytes); }
WARPHEAP_DEVICE_SYSCALL void free(void* memory) noexcept { warpheap::device_heap.free(memory); }
WARPHEAP_DEVICE_NAME void* calloc(std::size_t count, std::size_t size) noexcept {
  bool const is_empty = count == 0 || size == 0;
  return warpheap::device_heap.calloc(is_empty ? 1 : count, is_empty ? 1 : size);
}
WARPHEAP_DEVICE_NAME void* realloc(void* memory, std::size_t bytes) noexcept {
  return warpheap::device_heap.realloc(memory, bytes);
}
WARPHEAP_DEVICE_NAME void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  return warpheap::device_heap.make(bytes, alignment);
}

// What cuda::std::aligned_alloc calls, and nvcc for an aligned new in units compiled without this
// header.
extern "C" WARPHEAP_DEVICE_SYSCALL void* __cuda_syscall_aligned_malloc(std::size_t bytes, std::size_t alignment) {
  return warpheap::device_heap.make(bytes, alignment);
}
#if !defined(__CUDACC_RDC__)
// For this name nvcc calls CUDA's own function, whatever is defined.
#define __nv_aligned_device_malloc(bytes, alignment) __cuda_syscall_aligned_malloc(bytes, alignment)
#endif

// clang-format off
#define WARPHEAP_DEVICE_NEW(name)                                                                                      \
  WARPHEAP_DEVICE_NAME void* name(std::size_t bytes) { return warpheap::device_heap.make(bytes); }                     \
  WARPHEAP_DEVICE_NAME void* name(std::size_t bytes, std::align_val_t alignment) {                                     \
    return warpheap::device_heap.make(bytes, static_cast<std::size_t>(alignment));                                     \
  }                                                                                                                    \
  WARPHEAP_DEVICE_NAME void* name(std::size_t bytes, std::nothrow_t const&) noexcept {                                 \
    return warpheap::device_heap.make(bytes);                                                                          \
  }                                                                                                                    \
  WARPHEAP_DEVICE_NAME void* name(std::size_t bytes, std::align_val_t alignment, std::nothrow_t const&) noexcept {     \
    return warpheap::device_heap.make(bytes, static_cast<std::size_t>(alignment));                                     \
  }

#define WARPHEAP_DEVICE_DELETE(name, ...) \
  WARPHEAP_DEVICE_NAME void name(void* memory __VA_OPT__(, ) __VA_ARGS__) noexcept { warpheap::device_heap.free(memory); }

#define WARPHEAP_DEVICE_DELETES(name)                                       \
  WARPHEAP_DEVICE_DELETE(name)                                              \
  WARPHEAP_DEVICE_DELETE(name, std::size_t)                                 \
  WARPHEAP_DEVICE_DELETE(name, std::align_val_t)                            \
  WARPHEAP_DEVICE_DELETE(name, std::size_t, std::align_val_t)               \
  WARPHEAP_DEVICE_DELETE(name, std::nothrow_t const&)                       \
  WARPHEAP_DEVICE_DELETE(name, std::align_val_t, std::nothrow_t const&)

WARPHEAP_DEVICE_NEW(operator new)
WARPHEAP_DEVICE_NEW(operator new[])
WARPHEAP_DEVICE_DELETES(operator delete)
WARPHEAP_DEVICE_DELETES(operator delete[])
// clang-format on

#pragma nv_diagnostic pop

#undef WARPHEAP_DEVICE_DELETES
#undef WARPHEAP_DEVICE_DELETE
#undef WARPHEAP_DEVICE_NEW
#undef WARPHEAP_DEVICE_SYSCALL
#undef WARPHEAP_DEVICE_NAME

#endif
