// SPDX-License-Identifier: Apache-2.0
// What the host finds behind the name warpheap_device_heap in each module that has the archive: the
// version that compiled it, and the place for the heap.
//
//   archive.A2  The stamp is constant. The host writes the bytes of the heap, and no others, and
//       only where the stamp and the size are its own: a heap of another version lies otherwise.
#pragma once

#include <warpheap/heap/bound_heap.hpp>
#include <warpheap/heap/layout_stamp.hpp>

#include "allocator.hpp"

namespace warpheap::archive {

using bound = bound_heap<allocator>;

struct binding {
  static constexpr char const* symbol = "warpheap_device_heap";

  detail::layout_stamp stamp;
  u64 slab_log2;  ///< of the default allocator's configuration
  u64 bytes;      ///< of this binding
  alignas(16) u8 heap[sizeof(bound)];

  /// Bound to no heap.
  WARPHEAP_HOST_DEVICE static constexpr binding unbound() {
    return {
        detail::layout_stamp::of<allocator>(0, 0), creation::slab_bitmap_config{}.max_slab_log2, sizeof(binding), {}};
  }

  /// The heap, or none.
  WARPHEAP_DEVICE bound const& get() const { return *reinterpret_cast<bound const*>(heap); }
};

}  // namespace warpheap::archive
