// Which allocator override.hpp puts behind malloc, free, new and delete of device code: the default
// one, unless a program says otherwise by an explicit specialisation before it includes
// override.hpp. Where that comes too late, it does not compile. A header of the program's own is
// the place, and is what its kernels are compiled with:
//
//   #include <warpheap/heap/override_allocator.hpp> template <> struct
//   warpheap::override_allocator<> {
//     using type = warpheap::plain_allocator<warpheap::creation::slab_bitmap<small_slabs>>;
//   };
//   #include <warpheap/heap/override.hpp>
#pragma once

#include "default_heap.hpp"

namespace warpheap::inline WARPHEAP_BACKEND {

/// `type` serves device code that calls malloc, free, new and delete. The same for all units of a
/// program.
template <class Program = void>
struct override_allocator {
  using type = default_allocator;
};

}  // namespace warpheap::inline WARPHEAP_BACKEND
