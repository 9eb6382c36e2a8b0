// malloc, free, new and delete of device code, served by one heap of ours, in programs whose kernels are not edited:
//
//   nvcc -include warpheap/heap/override.hpp kernels.cu      each unit, or with -rdc=true at least one of a program
//   warpheap::override_heap heap{4_GiB};                     host: the heap, for as long as it lives
//
// nvcc takes a definition of such a name that only its device pass sees for that pass's own: device code calls it, with
// -rdc=true also device code that was compiled without this header, and host code is untouched. (Device code compiled
// without it and without -rdc=true still calls CUDA's.) The header adds names that CUDA has not in device code: calloc,
// realloc, aligned_alloc, and new with std::nothrow_t.
//
// Where the heap is, is read from constant memory, like a kernel's parameter. docs/guide/drop_in_replacement.md has the rest.
#pragma once

#include "bound_heap.hpp"
#include "default_heap.hpp"
#include "override_allocator.hpp"
#include "override_units.hpp"

#if defined(__CUDACC_RTC__)
#error "override.hpp is for nvcc; code for NVRTC takes a heap_ref, or calls the functions of c_interface.hpp"
#endif

#if !defined(__CUDACC_RTC__)
#include <cstdlib>
#include <new>
#endif

namespace warpheap::inline WARPHEAP_BACKEND {

/// This unit's own. Not `inline`: without -rdc=true units cannot share a variable, and with it every unit's is bound to the
/// same heap, so it does not matter from which of them the linker takes malloc.
#if defined(__CUDACC_RDC__)
static __device__ bound_heap<override_allocator<>::type> device_heap;
#elif defined(__CUDACC__)
static __constant__ bound_heap<override_allocator<>::type> device_heap;
#else
static bound_heap<override_allocator<>::type> device_heap;
#endif

namespace detail {

/// Different for different allocators, and the same in all units.
template <class Allocator>
constexpr char const* allocator_text() {
  return __PRETTY_FUNCTION__;
}

static inline void bind_this_unit(void const* binding) {
#if defined(__CUDACC__)
  cuda::check(cudaMemcpyToSymbol(device_heap, binding, sizeof device_heap), "cudaMemcpyToSymbol");
#else
  backend::copy_bytes(&device_heap, binding, sizeof device_heap);
#endif
}

static override_unit const this_unit{__BASE_FILE__, allocator_text<override_allocator<>::type>(), bind_this_unit};

}  // namespace detail

/// The heap behind device code's malloc, free, new and delete: made, it is bound in all units of the process that include
/// this header, on the current device; destroyed, it waits for the device's kernels, and is unbound. Make and destroy it
/// with the same device current, when no kernel runs that calls these names.
///
/// O1  All units on the list are bound to the one that lives, or all are unbound; but for those that came since bind().
/// O2  At most one lives: it claims that before it takes memory, and gives the claim back last.
/// O3  All units on the list were compiled for one allocator, or none is bound.
template <class Allocator>
class basic_override_heap {
 public:
  /// As basic_heap's; throws std::logic_error too if there is an override_heap or a unit was compiled for another
  /// allocator, and backend_error if the device cannot run a unit's code.
  explicit basic_override_heap(size_t bytes) : heap_{bytes} {
    try {
      bind();
    } catch (...) {  // O1: some may be bound
      detail::override_unit::try_bind_all(&unbound);
      throw;
    }
  }
  basic_override_heap(basic_override_heap const&) = delete;
  basic_override_heap& operator=(basic_override_heap const&) = delete;
  ~basic_override_heap() {
    try {
      synchronize();
    } catch (std::exception const&) {  // the runtime is unloading, or a kernel failed, which others are told
    }
    detail::override_unit::try_bind_all(&unbound);
  }

  /// Binds once more, for units of libraries that were loaded since.
  void bind() {
    bound_heap<Allocator> const binding{heap_.ref()};
    detail::override_unit::bind_all(detail::allocator_text<Allocator>(), &binding);
  }

  /// The heap itself: statistics, invariants, reset, and its ref() for kernels that take one.
  basic_heap<Allocator>& heap() noexcept { return heap_; }
  basic_heap<Allocator> const& heap() const noexcept { return heap_; }

 private:
  static constexpr bound_heap<Allocator> unbound{};

  detail::override_claim claim_;  // O2: first made, last destroyed
  basic_heap<Allocator> heap_;
};

using override_heap = basic_override_heap<override_allocator<>::type>;

}  // namespace warpheap::inline WARPHEAP_BACKEND

#if defined(__CUDA_ARCH__)

// Inline, which C++ leaves open for new and delete: the copies of several units are one, with -rdc=true. There also `used`,
// so that a unit without a kernel of its own serves those that do not know this header.
#if defined(__CUDACC_RDC__)
#define WARPHEAP_DEVICE_NAME inline __attribute__((used)) __device__ WARPHEAP_LINKED
#else
#define WARPHEAP_DEVICE_NAME inline __device__
#endif

#pragma nv_diagnostic push
#pragma nv_diag_suppress 2620, 20039  // that they are inline; and that calloc and its like become names of device code

WARPHEAP_DEVICE_NAME void* malloc(std::size_t bytes) noexcept { return warpheap::device_heap.malloc(bytes); }
WARPHEAP_DEVICE_NAME void free(void* memory) noexcept { warpheap::device_heap.free(memory); }
WARPHEAP_DEVICE_NAME void* calloc(std::size_t count, std::size_t size) noexcept {
  return warpheap::device_heap.calloc(count, size);
}
WARPHEAP_DEVICE_NAME void* realloc(void* memory, std::size_t bytes) noexcept {
  return warpheap::device_heap.realloc(memory, bytes);
}
WARPHEAP_DEVICE_NAME void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  return warpheap::device_heap.aligned_alloc(alignment, bytes);
}

#if defined(__CUDACC_RDC__)
// What nvcc 13 makes of an aligned new, and of __nv_aligned_device_malloc, in units that do not know this header.
extern "C" WARPHEAP_DEVICE_NAME void* __cuda_syscall_aligned_malloc(std::size_t bytes, std::size_t alignment) {
  return warpheap::device_heap.make(bytes, alignment);
}
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
#undef WARPHEAP_DEVICE_NAME

#endif
