// A heap that device code calls by a name, in all units of a process: made, it is bound in every
// unit that has the name; destroyed, it is unbound. override.hpp and global_heap.hpp share one
// behind malloc and warpheap::malloc, and halloc_interface.hpp has one behind hamalloc;
// docs/design/override.md has the reasons.
#pragma once

#include "bound_heap.hpp"
#include "bound_units.hpp"
#include "heap.hpp"

#if !defined(__CUDACC_RTC__)
#include <memory>

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

/// Different for different allocators, and the same in all units. With the configuration, which a
/// build may have set for one unit and not for another.
template <class Allocator, auto Config = config_of<typename Allocator::creation_type>()>
constexpr char const* allocator_text() {
  return __PRETTY_FUNCTION__;
}

/// A unit's variable, for a bound_unit. Throws backend_error where CUDA does not know it yet.
template <class Allocator>
void write_bound_heap(bound_heap<Allocator>& variable, void const* binding) {
#if defined(__CUDACC__)
  auto const status = cudaMemcpyToSymbol(variable, binding, sizeof variable);
  if (status == cudaErrorInvalidSymbol) {
    cudaGetLastError();
    throw backend_error{
        "CUDA does not know it yet. With -rdc=true that comes when the last file's static objects are made: "
        "link the file with the heap last, or make the heap in main()"};
  }
  cuda::check(status, "cudaMemcpyToSymbol");
#else
  backend::copy_bytes(&variable, binding, sizeof variable);
#endif
}

template <class Allocator>
void read_bound_heap(bound_heap<Allocator>& variable, void* binding) {
#if defined(__CUDACC__)
  cuda::check(cudaMemcpyFromSymbol(binding, variable, sizeof variable), "cudaMemcpyFromSymbol");
#else
  backend::copy_bytes(binding, &variable, sizeof variable);
#endif
}

}  // namespace detail

/// The heap behind a name of device code, for the device that is current when it is made. Made, it
/// is bound in all units of the process that are of its `Kind`; destroyed, it waits for the
/// device's kernels and is unbound. Make and destroy it when no kernel runs that calls the name.
///
/// O1  All units are bound to the one that lives, or all are unbound. A unit that comes while it
///     lives is bound as it comes; if it cannot be, it stays unbound, and bind() says why.
/// O2  At most one lives: it claims that before it takes memory, and gives the claim back last.
/// O3  All units are for one allocator when it is made, or none is bound.
/// O4  A device that was reset has taken the pool back. Then no unit holds the binding any more,
///     and the pool is not freed: its address may be another's by then.
template <class Allocator, class Kind>
class process_heap {
  using units = detail::bound_unit<Kind>;

 public:
  /// As basic_heap's. Throws std::logic_error too if there is a heap of this kind, or a unit was
  /// compiled for another allocator; backend_error if the device cannot run a unit's code, or CUDA
  /// does not know it yet.
  explicit process_heap(size_t bytes) {
    units::expect_all_bindable(nothing());  // before memory is taken
    heap_ = std::make_unique<basic_heap<Allocator>>(bytes);
    words_ = bound_heap<Allocator>{heap_->ref()};
    try {
      bind();
    } catch (...) {  // O1: some may be bound
      units::unbind_all(nothing());
      throw;
    }
  }
  process_heap(process_heap const&) = delete;
  process_heap& operator=(process_heap const&) = delete;
  ~process_heap() {
    backend::device_scope const there{binding_.device};
    try {
      synchronize();
      // the runtime is unloading, or a kernel failed, which others are told
    } catch (std::exception const&) {
    }
    bool const reset = !units::any_holds(binding_);
    units::unbind_all(nothing());
    if (reset) (void)heap_.release();  // O4: its own bytes are lost to the host, a few hundred
  }

  /// Binds once more. Throws what the constructor throws of units: so a program hears why a library
  /// that was loaded since could not be bound.
  void bind() { units::bind_all(binding_); }

  /// The heap itself: statistics, invariants, reset, and its ref() for kernels that take one.
  basic_heap<Allocator>& heap() noexcept { return *heap_; }
  basic_heap<Allocator> const& heap() const noexcept { return *heap_; }

 private:
  static constexpr bound_heap<Allocator> unbound{};

  detail::unit_binding nothing() const { return {binding_.allocator, binding_.device, &unbound, sizeof unbound}; }

  detail::process_claim<Kind> claim_;  // O2: first made, last destroyed
  bound_heap<Allocator> words_{};
  detail::unit_binding binding_{detail::allocator_text<Allocator>(), backend::current_device(), &words_, sizeof words_};
  std::unique_ptr<basic_heap<Allocator>> heap_;
};

}  // namespace warpheap::inline WARPHEAP_BACKEND

#endif
