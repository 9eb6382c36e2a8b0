// malloc, free, new and delete of device code, served by one heap of ours, in programs whose kernels are not edited:
//
//   nvcc -include warpheap/heap/override.hpp kernels.cu      each unit, or with -rdc=true at least one of a program
//   warpheap::override_heap heap{4_GiB};                     host: the heap, for as long as it lives
//
// The names themselves are in override_names.hpp. docs/guide/drop_in_replacement.md has the rest.
#pragma once

#include "override_names.hpp"
#include "process_heap.hpp"

namespace warpheap::inline WARPHEAP_BACKEND {

namespace detail {

struct [[gnu::visibility("default")]] override_kind {
  static constexpr char const* name = "override_heap";
  static constexpr char const* second = "the process has one, and device malloc serves one heap";
};
using override_unit = bound_unit<override_kind>;

static inline void write_this_unit(void const* binding) { write_bound_heap(device_heap, binding); }
static inline void read_this_unit(void* binding) { read_bound_heap(device_heap, binding); }

static override_unit const this_unit{
    __BASE_FILE__, allocator_text<override_allocator<>::type>(), {write_this_unit, read_this_unit}};

}  // namespace detail

/// The heap behind malloc, free, new and delete of device code, in all units of the process that
/// include this header: process_heap.hpp says what it promises.
template <class Allocator>
using basic_override_heap = process_heap<Allocator, detail::override_kind>;
using override_heap = basic_override_heap<override_allocator<>::type>;

}  // namespace warpheap::inline WARPHEAP_BACKEND
