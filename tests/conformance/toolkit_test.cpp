// SPDX-License-Identifier: Apache-2.0
// The toolkit's own allocator, which promises little: blocks, and that they keep their contents.
// CUDA's takes a second to serve 65,536 threads that ask for 1 KiB each (H200,
// bench/results/h200-compare.json), so a million would take minutes a claim.
#include "suite.hpp"
#include "warpheap/all.hpp"

WARPHEAP_CONFORMANCE(toolkit, warpheap::toolkit_allocator, warpheap::conformance::contention::sparse);
