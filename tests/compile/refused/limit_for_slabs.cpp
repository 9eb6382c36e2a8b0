// SPDX-License-Identifier: Apache-2.0
// refused: toolkit_goes_with_toolkit_limit, slab_bitmap, toolkit_limit
#include <warpheap/all.hpp>

using namespace warpheap;
using wrong = allocator<creation::slab_bitmap<>, distribution::none, oom::return_null, reserve_pool::toolkit_limit,
                        alignment::shrink<16>>;
wrong* never;
