// SPDX-License-Identifier: Apache-2.0
// The default allocator over a pool that began with little, and that the host grew: it promises all
// that it does over any other pool.
#include "suite.hpp"

WARPHEAP_CONFORMANCE(growing, warpheap::growing_allocator, warpheap::conformance::contention::full, 8);
