// SPDX-License-Identifier: Apache-2.0
// The archive: malloc and its kin of device code, compiled with -rdc=true, for programs that cannot
// include a C++20 header. Their kernels are linked with it as they are. nvcc turns each new and
// delete into calls of malloc, free and __cuda_syscall_aligned_malloc. warpheap.h declares the
// names.
//
// override_names.hpp says which registers these functions may use (override.N1, override.N2).
#include "binding.hpp"

#include <cstdlib>

#include "units.h"
#include "warpheap.h"

// A program and its libraries each have an archive, and a variable on the host for each.
#if !defined(__CUDA_ARCH__)
#define WARPHEAP_HOST_SYMBOL __attribute__((visibility("hidden")))
#else
#define WARPHEAP_HOST_SYMBOL
#endif

// In a block: of `extern "C"` without one, nvcc makes a declaration for the host.
extern "C" {
WARPHEAP_HOST_SYMBOL __device__ warpheap::archive::binding warpheap_device_heap = warpheap::archive::binding::unbound();
}

#if !defined(__CUDA_ARCH__)

// A program that binds its modules itself needs no libwarpheap_host.
extern "C" __attribute__((weak)) void warpheap_enter_unit(warpheap_unit*);
extern "C" __attribute__((weak)) void warpheap_leave_unit(warpheap_unit*);

namespace {

int find_heap(void** address, size_t* bytes) {
  auto status = cudaGetSymbolAddress(address, warpheap_device_heap);
  if (status == cudaSuccess) status = cudaGetSymbolSize(bytes, warpheap_device_heap);
  if (status != cudaSuccess) cudaGetLastError();  // it is reported by the caller
  return status;
}

class this_unit {
 public:
  this_unit() {
    if (warpheap_enter_unit) warpheap_enter_unit(&unit_);
  }
  ~this_unit() {
    if (warpheap_leave_unit) warpheap_leave_unit(&unit_);
  }

 private:
  warpheap_unit unit_{find_heap, nullptr};
};

this_unit const entered;

}  // namespace

#endif

// Only the device's pass sees definitions, so host code keeps the C library's.
#if defined(__CUDA_ARCH__)

#pragma nv_diagnostic push
// 20039 warns that calloc and its like become names of device code.
#pragma nv_diag_suppress 20039

extern "C" {

// As C++ wants of new, and as CUDA's heap has it, a block of no bytes has an address of its own.
WARPHEAP_NOINLINE WARPHEAP_DEVICE void* malloc(std::size_t bytes) noexcept {
  return warpheap_device_heap.get().make(bytes);
}
WARPHEAP_DEVICE void free(void* memory) noexcept { warpheap_device_heap.get().free(memory); }
WARPHEAP_DEVICE void* calloc(std::size_t count, std::size_t size) noexcept {
  bool const is_empty = count == 0 || size == 0;
  return warpheap_device_heap.get().calloc(is_empty ? 1 : count, is_empty ? 1 : size);
}
WARPHEAP_DEVICE void* realloc(void* memory, std::size_t bytes) noexcept {
  return warpheap_device_heap.get().realloc(memory, bytes);
}
WARPHEAP_DEVICE void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  return warpheap_device_heap.get().make(bytes, alignment);
}
WARPHEAP_DEVICE std::size_t malloc_usable_size(void* memory) noexcept {
  return warpheap_device_heap.get().usable_size(memory);
}

// What nvcc calls for an aligned new, and cuda::std::aligned_alloc.
WARPHEAP_DEVICE void* __cuda_syscall_aligned_malloc(std::size_t bytes, std::size_t alignment) {
  return warpheap_device_heap.get().make(bytes, alignment);
}

WARPHEAP_DEVICE void* warpheap_device_malloc(std::size_t bytes) { return malloc(bytes); }
WARPHEAP_DEVICE void warpheap_device_free(void* memory) { free(memory); }
WARPHEAP_DEVICE void* warpheap_device_calloc(std::size_t count, std::size_t size) { return calloc(count, size); }
WARPHEAP_DEVICE void* warpheap_device_realloc(void* memory, std::size_t bytes) { return realloc(memory, bytes); }
WARPHEAP_DEVICE void* warpheap_device_aligned_alloc(std::size_t alignment, std::size_t bytes) {
  return aligned_alloc(alignment, bytes);
}
WARPHEAP_DEVICE std::size_t warpheap_device_usable_size(void* memory) { return malloc_usable_size(memory); }

}  // extern "C"

#pragma nv_diagnostic pop

#endif
