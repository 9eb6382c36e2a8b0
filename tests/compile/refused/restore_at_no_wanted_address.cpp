// SPDX-License-Identifier: Apache-2.0
// refused: begins where the system says
#include <warpheap/heap/checkpoint.hpp>
#include <warpheap/warpheap.hpp>

using namespace warpheap;
// cudaMalloc puts the pool anywhere, and the image's pointers are not valid there.
auto wrong(heap_image const& image) { return restore<heap>(image); }
