// The toolkit's own allocator, which promises little: blocks, and that they stay. CUDA's serves
// 65,536 threads that ask for 1 KiB each in a second (H200, bench/results/h200-compare.json), so
// that a million would take minutes a claim.
#include "suite.hpp"
#include "warpheap/warpheap.hpp"

WARPHEAP_CONFORMANCE(toolkit, warpheap::toolkit_allocator, warpheap::conformance::crowd::sparse);
