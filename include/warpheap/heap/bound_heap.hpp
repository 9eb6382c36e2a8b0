// SPDX-License-Identifier: Apache-2.0
// An optional heap reference in device memory, written by the host, which serves malloc, free, new
// and delete in device code. override_names.hpp puts it behind the names of C and C++,
// global_heap.hpp behind our own names.
#pragma once

#include "../policy/creation/toolkit.hpp"
#include "allocator.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// The heap that serves device code, or none. All bytes zero, as in device variables before the
/// first write, means unbound: then malloc returns nullptr and free does nothing.
template <class Allocator>
class bound_heap {
  static_assert(__is_trivially_copyable(Allocator), "override_allocator: what kernels take is copied bitwise");
  static_assert(!same_type<typename Allocator::creation_type, creation::toolkit>,
                "override_allocator: toolkit asks device malloc, which would ask toolkit");

 public:
  bound_heap() = default;
  explicit bound_heap(Allocator const& ref) : bound_{1} {
    for (size_t i = 0; i < sizeof ref; ++i) ref_[i] = reinterpret_cast<u8 const*>(&ref)[i];
  }

  WARPHEAP_HOST_DEVICE bool is_bound() const { return bound_ != 0; }

  WARPHEAP_DEVICE void* malloc(size_t bytes) const { return is_bound() ? ref().malloc(bytes) : nullptr; }
  WARPHEAP_DEVICE void free(void* memory) const {
    if (is_bound()) ref().free(memory);
  }
  WARPHEAP_DEVICE void* calloc(size_t count, size_t size) const {
    return is_bound() ? ref().calloc(count, size) : nullptr;
  }

  /// Ends the kernel if the allocator does not know how much to copy.
  WARPHEAP_DEVICE void* realloc(void* memory, size_t bytes) const {
    if (!is_bound()) return nullptr;
    if constexpr (knows_block_size<typename Allocator::creation_type>) {
      return ref().realloc(memory, bytes);
    } else {
      simt::trap("realloc: this allocator does not know how large a block is");
      return nullptr;
    }
  }

  /// Also returns nullptr for an alignment that the allocator cannot provide.
  WARPHEAP_DEVICE void* aligned_alloc(size_t alignment, size_t bytes) const {
    if (!is_bound()) return nullptr;
    // By its name: nvcc finds no member in an expression that uses `this`.
    if constexpr (requires { &Allocator::aligned_alloc; }) return ref().aligned_alloc(alignment, bytes);
    else return alignment <= Allocator::traits.alignment ? ref().malloc(bytes) : nullptr;
  }

  // Whether the allocator has these functions. By their names: nvcc finds no member in an
  // expression that uses `this`.
  static constexpr bool knows_sizes = requires { &Allocator::usable_size; };
  static constexpr bool knows_owners = requires { &Allocator::owns; };
  static constexpr bool counts_its_slots = requires { &Allocator::available_slots; };

  WARPHEAP_DEVICE size_t usable_size(void const* memory) const requires knows_sizes {
    return is_bound() ? ref().usable_size(memory) : 0;
  }
  WARPHEAP_DEVICE bool owns(void const* memory) const requires knows_owners { return is_bound() && ref().owns(memory); }
  WARPHEAP_DEVICE u64 available_slots(size_t bytes) const requires counts_its_slots {
    return is_bound() ? ref().available_slots(bytes) : 0;
  }
  static constexpr bool counts_its_slots_by_warp = requires { &Allocator::available_slots_warp; };
  WARPHEAP_DEVICE u64 available_slots_warp(lane_mask mask, size_t bytes) const requires counts_its_slots_by_warp {
    return is_bound() ? ref().available_slots_warp(mask, bytes) : 0;
  }

  /// For malloc and operator new: even a block of 0 bytes gets its own address.
  WARPHEAP_DEVICE void* make(size_t bytes) const { return malloc(bytes ? bytes : 1); }
  WARPHEAP_DEVICE void* make(size_t bytes, size_t alignment) const {
    return aligned_alloc(alignment, bytes ? bytes : 1);
  }

 private:
  WARPHEAP_DEVICE Allocator ref() const { return *reinterpret_cast<Allocator const*>(ref_); }

  u64 bound_;
  alignas(16) u8 ref_[sizeof(Allocator)];
};

}}  // namespace warpheap::WARPHEAP_BACKEND
