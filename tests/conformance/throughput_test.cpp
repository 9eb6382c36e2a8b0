// SPDX-License-Identifier: Apache-2.0
// UAlloc and TBuddy as one: with the defaults, and with wide bins, pages of 2 KiB and few empty
// bins kept, so that memory moves between the two.
#include "suite.hpp"
#include "warpheap/all.hpp"

WARPHEAP_CONFORMANCE(throughput, warpheap::throughput_allocator, warpheap::conformance::contention::full, 24);

#if !defined(__CUDACC__)  // one is enough to compile there
constexpr warpheap::creation::ualloc_config wide_and_tight{
    .chunk_log2 = 16, .wide_bins = true, .largest_log2 = 10, .idle_bins = 1};
using wide_throughput = warpheap::plain_allocator<warpheap::creation::throughput<wide_and_tight>>;

WARPHEAP_CONFORMANCE(throughput_wide, wide_throughput, warpheap::conformance::contention::full, 50);
#endif
