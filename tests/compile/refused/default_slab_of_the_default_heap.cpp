// SPDX-License-Identifier: Apache-2.0
// refused: slab_bitmap: slabs are 16 KiB to 2 MiB
#define WARPHEAP_SLAB_BITMAP_MAX_SLAB_LOG2 22
#include <warpheap/warpheap.hpp>

warpheap::heap_ref never;
