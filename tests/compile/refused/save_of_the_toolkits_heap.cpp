// SPDX-License-Identifier: Apache-2.0
// refused: blocks of the toolkit's heap lie in no pool
#include <warpheap/all.hpp>
#include <warpheap/heap/checkpoint.hpp>

using namespace warpheap;
// Nothing tells where CUDA keeps its blocks.
auto wrong(toolkit_heap const& heap) { return save(heap); }
