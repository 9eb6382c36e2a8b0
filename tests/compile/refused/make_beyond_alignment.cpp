// SPDX-License-Identifier: Apache-2.0
// refused: the type is aligned to more than this heap aligns blocks to
#include <warpheap/allocator/toolkit.hpp>

using namespace warpheap;
struct alignas(64) line {
  u32 numbers[16];
};
WARPHEAP_DEVICE line* wrong(toolkit_allocator memory) { return memory.make<line>(); }
