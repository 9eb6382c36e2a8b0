// SPDX-License-Identifier: Apache-2.0
// The default allocator over a pool that grew by what a call was refused.
#include "suite.hpp"

WARPHEAP_CONFORMANCE(polled, warpheap::polled_allocator, warpheap::conformance::contention::full, 8);
