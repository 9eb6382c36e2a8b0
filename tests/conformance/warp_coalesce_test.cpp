// SPDX-License-Identifier: Apache-2.0
// A warp's small requests as one block, over the default allocator and over the toolkit's: any
// creation policy will do. With fewer lanes on a GPU: a million lanes would hold more than the pool
// in blocks that wait for their last part.
#include "suite.hpp"
#include "warpheap/all.hpp"

using namespace warpheap;

using slab_bitmap_coalesced_allocator = allocator<creation::slab_bitmap<>, distribution::warp_coalesce,
                                                  oom::return_null, reserve_pool::device_memory, alignment::shrink<16>>;
using toolkit_coalesced_allocator = allocator<creation::toolkit, distribution::warp_coalesce, oom::return_null,
                                              reserve_pool::toolkit_limit, alignment::shrink<16>>;

WARPHEAP_CONFORMANCE(slab_bitmap_coalesced, slab_bitmap_coalesced_allocator, conformance::contention::sparse);
WARPHEAP_CONFORMANCE(toolkit_coalesced, toolkit_coalesced_allocator, conformance::contention::sparse);
