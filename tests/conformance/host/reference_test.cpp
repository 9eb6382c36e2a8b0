// SPDX-License-Identifier: Apache-2.0
// The suite can be passed: a slow and simple allocator that promises everything passes it. Not on a
// GPU, where a hundred thousand threads would queue for its lock.
#include "../reference.hpp"
#include "../suite.hpp"

using reference_allocator = warpheap::conformance::reference<>;

WARPHEAP_CONFORMANCE(reference, reference_allocator);
