// UAlloc alone: blocks of up to 1 KiB from bins of one page, and of up to 2 KiB from wide ones.
#include "suite.hpp"
#include "warpheap/warpheap.hpp"

WARPHEAP_CONFORMANCE(ualloc, warpheap::ualloc_allocator, warpheap::conformance::crowd::full, 16);

// Wide bins, and little that is empty is kept: bins go back to their chunks, and chunks to the pool.
constexpr warpheap::creation::ualloc_config wide_and_tight{.chunk_log2 = 17, .wide_bins = true, .idle_bins = 1};
using wide_ualloc = warpheap::plain_allocator<warpheap::creation::ualloc<wide_and_tight>>;

WARPHEAP_CONFORMANCE(ualloc_wide, wide_ualloc, warpheap::conformance::crowd::full, 50);
