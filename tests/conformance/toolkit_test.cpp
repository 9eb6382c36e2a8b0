// The toolkit's own allocator, which promises little: blocks, and that they stay.
#include "suite.hpp"
#include "warpheap/warpheap.hpp"

WARPHEAP_CONFORMANCE(toolkit, warpheap::toolkit_allocator);
