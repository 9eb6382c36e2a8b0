// The default allocator over a pool that began with nothing, and grew: it promises all that it does
// over any other pool.
#include "suite.hpp"
#include "warpheap/heap/growing_heap.hpp"

WARPHEAP_CONFORMANCE(growing, warpheap::growing_allocator, warpheap::conformance::crowd::full, 8);
