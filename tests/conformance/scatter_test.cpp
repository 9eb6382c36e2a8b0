// SPDX-License-Identifier: Apache-2.0
// ScatterAlloc, which promises everything but that sizes are aligned to themselves.
#include "suite.hpp"
#include "warpheap/all.hpp"

WARPHEAP_CONFORMANCE(scatter, warpheap::scatter_allocator, warpheap::conformance::contention::full, 2);
