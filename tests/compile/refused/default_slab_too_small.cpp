// SPDX-License-Identifier: Apache-2.0
// refused: halloc: slabs are a power of two of 16 KiB to 8 MiB
#define WARPHEAP_HALLOC_SLAB_BYTES 4096
#include <warpheap/all.hpp>

warpheap::halloc_allocator never;
