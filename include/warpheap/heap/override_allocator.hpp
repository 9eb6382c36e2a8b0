// SPDX-License-Identifier: Apache-2.0
// The allocator that override.hpp puts behind malloc, free, new and delete of device code: the
// default one, unless the program specialises this template before it includes override.hpp. A
// specialisation after that does not compile. It belongs in a header of the program's own, included
// in all its kernels' files:
//
//   #include <warpheap/heap/override_allocator.hpp>
//   template <>
//   struct warpheap::override_allocator<> {
//     using type = warpheap::plain_allocator<warpheap::creation::slab_bitmap<small_slabs>>;
//   };
//   #include <warpheap/heap/override.hpp>
#pragma once

#include "default_heap.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// `type` serves device code that calls malloc, free, new and delete. It must be the same in all
/// units of a program.
template <class Program = void>
struct override_allocator {
  /// The allocator.
  using type = default_allocator;
};

}}  // namespace warpheap::WARPHEAP_BACKEND
