// The toolkit's own allocator, which promises little: blocks, and that they stay.
#include "suite.hpp"
#include "warpheap/policy/alignment/shrink.hpp"
#include "warpheap/policy/creation/toolkit.hpp"
#include "warpheap/policy/distribution/none.hpp"
#include "warpheap/policy/oom/return_null.hpp"
#include "warpheap/policy/reserve_pool/device_memory.hpp"

using toolkit_allocator =
    warpheap::allocator<warpheap::creation::toolkit, warpheap::distribution::none, warpheap::oom::return_null,
                        warpheap::reserve_pool::device_memory, warpheap::alignment::shrink<16>>;

WARPHEAP_CONFORMANCE(toolkit, toolkit_allocator);
