// SPDX-License-Identifier: Apache-2.0
// refused: alignment_serves_creation, creation::scatter<, alignment::shrink<8192
#include <warpheap/all.hpp>

using namespace warpheap;
// Runs of several pages start at any page of 4 KiB.
using wrong = allocator<creation::scatter<>, distribution::none, oom::return_null, reserve_pool::device_memory,
                        alignment::shrink<8192>>;
wrong* never;
