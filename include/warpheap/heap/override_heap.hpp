// SPDX-License-Identifier: Apache-2.0
// The host's side of the one heap of a process that device code finds without a parameter. Two
// headers give it names: override.hpp replaces malloc itself, and global_heap.hpp adds
// warpheap::malloc beside CUDA's malloc. process_heap.hpp says what it promises.
#pragma once

#include "device_heap.hpp"
#include "process_heap.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

namespace detail {

struct [[gnu::visibility("default")]] override_kind {
  static constexpr char const* name = "override_heap";
  static constexpr char const* second = "the process has one, and device code is served by one";
};
using override_unit = bound_unit<override_kind>;

static inline void write_this_unit(void const* binding) { write_bound_heap(device_heap, binding); }
static inline void read_this_unit(void* binding) { read_bound_heap(device_heap, binding); }

static override_unit const this_unit{
    __BASE_FILE__, allocator_text<override_allocator<>::type>(), {write_this_unit, read_this_unit}};

}  // namespace detail

/// The heap that device code calls by name, in all units of the process that include this header.
template <class Allocator>
using basic_override_heap = process_heap<Allocator, detail::override_kind>;
/// The heap that device code calls by name, of the allocator that override_allocator names.
using override_heap = basic_override_heap<override_allocator<>::type>;

}}  // namespace warpheap::WARPHEAP_BACKEND
