// SPDX-License-Identifier: Apache-2.0
// refused: alignment_serves_overflow, overflow_to<, alignment::shrink<128
#include <warpheap/all.hpp>

using namespace warpheap;
// The first heap aligns multiples of 128, and the second does not.
using wrong = allocator<creation::slab_bitmap<>, distribution::none, oom::overflow_to<scatter_allocator>,
                        reserve_pool::device_memory, alignment::shrink<128>>;
wrong* never;
