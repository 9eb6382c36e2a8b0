// SPDX-License-Identifier: Apache-2.0
// Halloc with its defaults, and with several rows, short probes and slabs that are soon sparse, so
// that slabs change hands.
#include "suite.hpp"
#include "warpheap/all.hpp"

WARPHEAP_CONFORMANCE(halloc, warpheap::halloc_allocator, warpheap::conformance::contention::full, 30);

#if !defined(__CUDACC__)  // one is enough to compile there
constexpr warpheap::creation::halloc_config lively{
    .slab_bytes = 16384, .sparse_up_to = 500, .probes = 2, .slabs_per_row = 8};
using lively_halloc = warpheap::finely_aligned_allocator<warpheap::creation::halloc<lively>>;

WARPHEAP_CONFORMANCE(halloc_lively, lively_halloc, warpheap::conformance::contention::full, 80);
#endif
