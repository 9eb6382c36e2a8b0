// SPDX-License-Identifier: Apache-2.0
// TBuddy, with pages small enough that the pools of the suite hold blocks for every lane: TBuddy
// rounds a request up to at least a page. A heap that serves this many lanes from a few semaphores
// meets fewer lanes on a GPU.
#include "suite.hpp"
#include "warpheap/all.hpp"

constexpr warpheap::creation::tbuddy_config small_pages{.page_bytes = 256};
using tbuddy_of_256 = warpheap::plain_allocator<warpheap::creation::tbuddy<small_pages>>;

WARPHEAP_CONFORMANCE(tbuddy_256, tbuddy_of_256, warpheap::conformance::contention::sparse, 3);
