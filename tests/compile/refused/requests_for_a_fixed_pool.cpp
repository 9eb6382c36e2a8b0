// SPDX-License-Identifier: Apache-2.0
// refused: requests_reach_a_growing_pool, oom::grow_on_demand<, reserve_pool::device_memory
#include <warpheap/policy/oom/grow_on_demand.hpp>
#include <warpheap/warpheap.hpp>

using namespace warpheap;
// The host could not answer.
using wrong = allocator<creation::slab_bitmap<>, distribution::none, oom::grow_on_demand<>, reserve_pool::device_memory,
                        alignment::shrink<16>>;
wrong* never;
