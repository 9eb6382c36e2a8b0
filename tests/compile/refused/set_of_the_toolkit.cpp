// SPDX-License-Identifier: Apache-2.0
// refused: member_knows_its_pool, creation::toolkit
#include <warpheap/all.hpp>
#include <warpheap/heap/heap_set.hpp>

using namespace warpheap;
// Nothing tells its blocks from those of another GPU.
using wrong = basic_heap_set<toolkit_allocator>;
wrong* never;
