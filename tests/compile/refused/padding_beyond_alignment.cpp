// SPDX-License-Identifier: Apache-2.0
// refused: alignment_serves_creation, slab_bitmap, shrink
#include <warpheap/warpheap.hpp>

using namespace warpheap;
using wrong = allocator<creation::slab_bitmap<>, distribution::none, oom::return_null, reserve_pool::device_memory,
                        alignment::shrink<8192>>;
wrong* never;
