// SPDX-License-Identifier: Apache-2.0
// refused: distribution_page_fits_creation, paged, warp_coalesce
#include <warpheap/warpheap.hpp>

using namespace warpheap;

// Serves requests of a page, and of several in another way, as scatter does.
struct paged : creation::slab_bitmap<> {
  static constexpr size_t page_bytes = 2048;
};

using wrong =
    allocator<paged, distribution::warp_coalesce, oom::return_null, reserve_pool::device_memory, alignment::shrink<16>>;
wrong* never;
