// SPDX-License-Identifier: Apache-2.0
// refused: creation_follows_a_growing_pool, creation::scatter<, reserve_pool::growing
#include <warpheap/all.hpp>
#include <warpheap/heap/growing_heap.hpp>

using namespace warpheap;
// Nothing tells scatter which of its pages have memory.
using wrong =
    allocator<creation::scatter<>, distribution::none, oom::return_null, reserve_pool::growing, alignment::shrink<16>>;
wrong* never;
