// SPDX-License-Identifier: Apache-2.0
// The allocator of docs/guide/your_allocator.md keeps the contract, on the host.
#include "../suite.hpp"
#include "examples/15_your_allocator/unit_bitmap.hpp"

using your_allocator = warpheap::plain_allocator<example::unit_bitmap>;

WARPHEAP_CONFORMANCE(your_allocator, your_allocator, warpheap::conformance::contention::full, 30);
