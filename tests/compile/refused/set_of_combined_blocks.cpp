// SPDX-License-Identifier: Apache-2.0
// refused: member_hands_out_as_created, distribution::basic_warp_coalesce<
#include <warpheap/heap/heap_set.hpp>
#include <warpheap/warpheap.hpp>

using namespace warpheap;
// Another GPU would have to change headers between the blocks.
using wrong = basic_heap_set<allocator<creation::slab_bitmap<>, distribution::warp_coalesce, oom::return_null,
                                       reserve_pool::device_memory, alignment::shrink<16>>>;
wrong* never;
