// SPDX-License-Identifier: Apache-2.0
// refused: member_returns_null, oom::trap
#include <warpheap/heap/heap_set.hpp>
#include <warpheap/warpheap.hpp>

using namespace warpheap;
// Calls that find no memory drain the mailbox.
using wrong = basic_heap_set<allocator<creation::slab_bitmap<>, distribution::none, oom::trap,
                                       reserve_pool::device_memory, alignment::shrink<16>>>;
wrong* never;
