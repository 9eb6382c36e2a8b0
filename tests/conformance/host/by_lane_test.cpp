// SPDX-License-Identifier: Apache-2.0
// TBuddy and UAlloc as printed: each lane calls for itself, and the semaphores are asked by
// compare-and-swap. throughput has both of them, UAlloc without an empty bin kept.
#include "../suite.hpp"
#include "warpheap/all.hpp"

constexpr warpheap::creation::tbuddy_config small_pages{.page_bytes = 256, .shares_requests = false};
using tbuddy_by_lane = warpheap::plain_allocator<warpheap::creation::tbuddy<small_pages>>;

WARPHEAP_CONFORMANCE(tbuddy_by_lane, tbuddy_by_lane, warpheap::conformance::contention::sparse, 100);

constexpr warpheap::creation::ualloc_config bins_by_lane{.least_bytes = 8, .idle_bins = 0, .shares_requests = false};
using throughput_by_lane = warpheap::finely_aligned_allocator<warpheap::creation::throughput<bins_by_lane>>;

WARPHEAP_CONFORMANCE(throughput_by_lane, throughput_by_lane, warpheap::conformance::contention::full, 200);
