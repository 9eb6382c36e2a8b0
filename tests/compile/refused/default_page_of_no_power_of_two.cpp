// SPDX-License-Identifier: Apache-2.0
// refused: scatter: pages are a power of two of 512 bytes to 256 KiB
#define WARPHEAP_SCATTER_PAGE_BYTES 5000  // as a build's -D
#include <warpheap/all.hpp>

warpheap::scatter_allocator never;
