// SPDX-License-Identifier: Apache-2.0
// refused: overflow_knows_creation_by_its_pool, toolkit, overflow_to
#include <warpheap/all.hpp>

using namespace warpheap;
using wrong = allocator<creation::toolkit, distribution::none, oom::overflow_to<toolkit_allocator>,
                        reserve_pool::toolkit_limit, alignment::shrink<16>>;
wrong* never;
