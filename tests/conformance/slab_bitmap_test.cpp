// SPDX-License-Identifier: Apache-2.0
// The default allocator, which promises everything.
#include "suite.hpp"
#include "warpheap/warpheap.hpp"

WARPHEAP_CONFORMANCE(slab_bitmap, warpheap::default_allocator);
