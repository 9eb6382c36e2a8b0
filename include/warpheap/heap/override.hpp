// malloc, free, new and delete of device code, served by one heap of ours, in programs whose kernels are not edited:
//
//   nvcc -include warpheap/heap/override.hpp kernels.cu      each unit, or with -rdc=true at least one of a program
//   warpheap::override_heap heap{4_GiB};                     host: the heap, for as long as it lives
//
// The names themselves are in override_names.hpp. docs/guide/drop_in_replacement.md has the rest.
#pragma once

#include "override_names.hpp"
#include "override_units.hpp"

namespace warpheap::inline WARPHEAP_BACKEND {

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
