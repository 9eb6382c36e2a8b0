// SPDX-License-Identifier: Apache-2.0
// A heap that device code calls by name in all units of a process. Its constructor binds it in
// every unit that has the name; its destructor unbinds it. override.hpp and global_heap.hpp share
// one, behind malloc and warpheap::malloc. halloc_interface.hpp has one behind hamalloc.
// docs/design/override.md says why.
#pragma once

#include "../version.hpp"
#include "bound_heap.hpp"
#include "bound_units.hpp"
#include "heap.hpp"

#if !defined(__CUDACC_RTC__)
#include <memory>

namespace warpheap { inline namespace WARPHEAP_BACKEND {

struct growth;
/// The host's owner of a heap whose kernels hold an `Allocator`. An adaptor specialises it.
template <class Allocator>
struct owner_of {
  using type = basic_heap<Allocator>;
};

namespace detail {

template <auto Value>
struct holds {};

/// The configuration of a creation policy, if it has one.
template <class Creation>
constexpr auto config_of() {
  if constexpr (requires { holds<Creation::config>{}; }) return Creation::config;
  else return 0;
}

/// A text that differs between allocators and is the same in all units. It includes the version,
/// and the configuration, which a build may have set for only some units.
template <class Allocator, auto Config = config_of<typename Allocator::creation_type>(), u32 Version = WARPHEAP_VERSION>
constexpr char const* allocator_text() {
  return __PRETTY_FUNCTION__;
}

/// Writes a unit's variable, for a bound_unit. Throws backend_error if CUDA has not registered the
/// variable yet.
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
  cuda_backend::throw_on_error(status, "cudaMemcpyToSymbol");
#else
  backend::copy_bytes(&variable, binding, sizeof variable);
#endif
}

template <class Allocator>
void read_bound_heap(bound_heap<Allocator>& variable, void* binding) {
#if defined(__CUDACC__)
  cuda_backend::throw_on_error(cudaMemcpyFromSymbol(binding, variable, sizeof variable), "cudaMemcpyFromSymbol");
#else
  backend::copy_bytes(binding, &variable, sizeof variable);
#endif
}

}  // namespace detail

/// The heap behind a name in device code, on the device that is current at construction. Its
/// constructor binds it in all units of its `Kind` in the process. Its destructor waits for the
/// device's kernels and unbinds it. Construct and destroy it while no kernel that calls the name is
/// running.
///
/// override.O1  All units are bound to the live heap, or all are unbound. A unit that registers
///     while the heap lives is bound at once; if it cannot be, it stays unbound, and bind() says
///     why.
/// override.O2  At most one heap lives: it takes a claim before it takes memory, and gives the
///     claim back last.
/// override.O3  When the heap is made, all units are compiled for its allocator, or none is bound.
/// override.O4  A device that was reset has taken the pool back. Then no unit holds the binding any
///     more. The pool is not freed, because its address may belong to another allocation by then.
template <class Allocator, class Kind>
class process_heap {
  using units = detail::bound_unit<Kind>;
  using owner = typename owner_of<Allocator>::type;
  static constexpr bool grows = requires(owner & heap) { heap.trim(); };

 public:
  /// Like basic_heap's constructors. Also throws std::logic_error if there is a heap of this kind
  /// already, or a unit was compiled for another allocator; backend_error if the device cannot run
  /// a unit's code, or CUDA has not registered its variable yet.
  explicit process_heap(size_t bytes) {
    static_assert(!grows, "this allocator's pool grows: say growth{.initial = ..., .limit = ...}");
    if constexpr (!grows) make(bytes);
  }
  /// For an allocator whose pool grows: its initial size and limit. Functions of heap() grow and
  /// trim it. Throws as the constructor above.
  explicit process_heap(growth const& sizes) {
    static_assert(grows, "this allocator's pool has one size, in bytes; that of polled_allocator grows");
    if constexpr (grows) make(sizes);
  }
  process_heap(process_heap const&) = delete;
  process_heap& operator=(process_heap const&) = delete;
  ~process_heap() {
    backend::device_scope const there{binding_.device};
    try {
      synchronize();
      // the runtime is unloading, or a kernel failed; other calls report that
    } catch (std::exception const&) {
    }
    bool const reset = !units::any_holds(binding_);
    units::unbind_all(nothing());
    if (reset) (void)heap_.release();  // override.O4: leaks a few hundred bytes of host memory
  }

  /// Binds all units again. Throws the constructor's errors about units, so that a program learns
  /// why a library loaded since could not be bound.
  void bind() { units::bind_all(binding_); }

  /// The heap itself: statistics, invariants, reset, and its ref() for kernels that take one.
  owner& heap() noexcept { return *heap_; }
  /// As above.
  owner const& heap() const noexcept { return *heap_; }

 private:
  static constexpr bound_heap<Allocator> unbound{};

  template <class Size>
  void make(Size const& size) {
    units::expect_all_bindable(nothing());  // before memory is taken
    heap_ = std::make_unique<owner>(size);
    words_ = bound_heap<Allocator>{heap_->ref()};
    try {
      bind();
    } catch (...) {  // override.O1: some may be bound
      units::unbind_all(nothing());
      throw;
    }
  }

  detail::unit_binding nothing() const { return {binding_.allocator, binding_.device, &unbound, sizeof unbound}; }

  detail::process_claim<Kind> claim_;  // override.O2: first made, last destroyed
  bound_heap<Allocator> words_{};
  detail::unit_binding binding_{detail::allocator_text<Allocator>(), backend::current_device(), &words_, sizeof words_};
  std::unique_ptr<owner> heap_;
};

}}  // namespace warpheap::WARPHEAP_BACKEND

#endif
