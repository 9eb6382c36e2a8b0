// ScatterAlloc, which promises everything but alignment to a size.
#include "suite.hpp"
#include "warpheap/policy/creation/scatter.hpp"
#include "warpheap/warpheap.hpp"

WARPHEAP_CONFORMANCE(scatter, warpheap::plain_allocator<warpheap::creation::scatter<>>);
