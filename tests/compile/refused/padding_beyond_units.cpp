// SPDX-License-Identifier: Apache-2.0
// refused: alignment_serves_creation, creation::rw_malloc<, alignment::shrink<128
#include <warpheap/all.hpp>

using namespace warpheap;
// Runs start at any unit of 16 bytes.
using wrong = allocator<creation::rw_malloc<>, distribution::none, oom::return_null, reserve_pool::device_memory,
                        alignment::shrink<128>>;
wrong* never;
