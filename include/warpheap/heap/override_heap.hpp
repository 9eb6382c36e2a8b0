// The one heap of a process that device code finds by no parameter, as the host has it: made, it is
// bound in all units that include this. Two headers do: override.hpp, where malloc itself is ours, and
// global_heap.hpp, where warpheap::malloc is beside CUDA's.
#pragma once

#include "device_heap.hpp"
#include "override_units.hpp"

#if !defined(__CUDACC_RTC__)
#include <memory>
#endif

namespace warpheap::inline WARPHEAP_BACKEND {

namespace detail {

template <auto Value>
struct holds {};

/// The configuration of a creation policy, where it has one.
template <class Creation>
constexpr auto config_of() {
  if constexpr (requires { holds<Creation::config>{}; }) return Creation::config;
  else return 0;
}

/// Different for different allocators, and the same in all units. With the configuration, which a build
/// may have set for one unit and not for another.
template <class Allocator, auto Config = config_of<typename Allocator::creation_type>()>
constexpr char const* allocator_text() {
  return __PRETTY_FUNCTION__;
}

static inline void write_this_unit(void const* binding) {
#if defined(__CUDACC__)
  auto const status = cudaMemcpyToSymbol(device_heap, binding, sizeof device_heap);
  if (status == cudaErrorInvalidSymbol) {
    cudaGetLastError();
    throw backend_error{
        "CUDA does not know it yet. With -rdc=true that comes when the last file's static objects are made: "
        "link the file with the heap last, or make the heap in main()"};
  }
  cuda::check(status, "cudaMemcpyToSymbol");
#else
  backend::copy_bytes(&device_heap, binding, sizeof device_heap);
#endif
}

static inline void read_this_unit(void* binding) {
#if defined(__CUDACC__)
  cuda::check(cudaMemcpyFromSymbol(binding, device_heap, sizeof device_heap), "cudaMemcpyFromSymbol");
#else
  backend::copy_bytes(binding, &device_heap, sizeof device_heap);
#endif
}

static override_unit const this_unit{
    __BASE_FILE__, allocator_text<override_allocator<>::type>(), {write_this_unit, read_this_unit}};

}  // namespace detail

/// The heap behind malloc, free, new and delete of device code, for the device that is current when
/// it is made. Made, it is bound in all units of the process that include this header; destroyed,
/// it waits for the device's kernels and is unbound. Make and destroy it when no kernel runs that
/// calls these names.
///
/// O1  All units are bound to the one that lives, or all are unbound. A unit that comes while it
///     lives is bound as it comes; if it cannot be, it stays unbound, and bind() says why.
/// O2  At most one lives: it claims that before it takes memory, and gives the claim back last.
/// O3  All units are for one allocator when it is made, or none is bound.
/// O4  A device that was reset has taken the pool back. Then no unit holds the binding any more,
///     and the pool is not freed: its address may be another's by then.
template <class Allocator>
class basic_override_heap {
 public:
  /// As basic_heap's. Throws std::logic_error too if there is an override_heap, or a unit was
  /// compiled for another allocator; backend_error if the device cannot run a unit's code, or CUDA
  /// does not know it yet.
  explicit basic_override_heap(size_t bytes) {
    detail::override_unit::expect_all_bindable(nothing());  // before memory is taken
    heap_ = std::make_unique<basic_heap<Allocator>>(bytes);
    words_ = bound_heap<Allocator>{heap_->ref()};
    try {
      bind();
    } catch (...) {  // O1: some may be bound
      detail::override_unit::unbind_all(nothing());
      throw;
    }
  }
  basic_override_heap(basic_override_heap const&) = delete;
  basic_override_heap& operator=(basic_override_heap const&) = delete;
  ~basic_override_heap() {
    backend::device_scope const there{binding_.device};
    try {
      synchronize();
    } catch (std::exception const&) {  // the runtime is unloading, or a kernel failed, which others are told
    }
    bool const reset = !detail::override_unit::any_holds(binding_);
    detail::override_unit::unbind_all(nothing());
    if (reset) (void)heap_.release();  // O4: its own bytes are lost to the host, a few hundred
  }

  /// Binds once more. Throws what the constructor throws of units: so a program hears why a library
  /// that was loaded since could not be bound.
  void bind() { detail::override_unit::bind_all(binding_); }

  /// The heap itself: statistics, invariants, reset, and its ref() for kernels that take one.
  basic_heap<Allocator>& heap() noexcept { return *heap_; }
  basic_heap<Allocator> const& heap() const noexcept { return *heap_; }

 private:
  static constexpr bound_heap<Allocator> unbound{};

  detail::override_binding nothing() const { return {binding_.allocator, binding_.device, &unbound, sizeof unbound}; }

  detail::override_claim claim_;  // O2: first made, last destroyed
  bound_heap<Allocator> words_{};
  detail::override_binding binding_{detail::allocator_text<Allocator>(), backend::current_device(), &words_,
                                    sizeof words_};
  std::unique_ptr<basic_heap<Allocator>> heap_;
};

using override_heap = basic_override_heap<override_allocator<>::type>;

}  // namespace warpheap::inline WARPHEAP_BACKEND
