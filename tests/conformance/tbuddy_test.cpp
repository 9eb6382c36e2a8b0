// TBuddy, with pages so small that the pools of the suite hold blocks enough for every lane: what
// is asked for is rounded up to a page at least. A heap that serves so many lanes from so few
// semaphores meets fewer of them on a GPU.
#include "suite.hpp"
#include "warpheap/warpheap.hpp"

constexpr warpheap::creation::tbuddy_config small_pages{.page_bytes = 256};
using tbuddy_of_256 = warpheap::plain_allocator<warpheap::creation::tbuddy<small_pages>>;

WARPHEAP_CONFORMANCE(tbuddy_256, tbuddy_of_256, warpheap::conformance::crowd::sparse, 3);
