// ScatterAlloc, which promises all but that sizes are aligned to themselves.
#include "suite.hpp"
#include "warpheap/warpheap.hpp"

WARPHEAP_CONFORMANCE(scatter, warpheap::scatter_allocator, warpheap::conformance::crowd::full, 2);
