// SPDX-License-Identifier: Apache-2.0
// refused: peers_reach_member, growing_allocator
#include <warpheap/heap/growing_heap.hpp>
#include <warpheap/heap/heap_set.hpp>
#include <warpheap/warpheap.hpp>

using namespace warpheap;
// The pool is mapped for its own GPU.
using wrong = basic_heap_set<growing_allocator>;
wrong* never;
