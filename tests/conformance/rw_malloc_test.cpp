// SPDX-License-Identifier: Apache-2.0
// Runs of units. On the CPU every word that a search looks at costs a lane's step, so units are
// large enough that the suite's pools have few, in groups of few words. On a GPU they have 16
// bytes, the default. On both, also with windows of four words a lane.
#include "suite.hpp"
#include "warpheap/all.hpp"

namespace {

using namespace warpheap;

#if defined(__CUDACC__)
WARPHEAP_CONFORMANCE(rw_malloc, rw_malloc_allocator, conformance::contention::full);

constexpr creation::rw_malloc_config wide_windows{.words_per_lane = 4};
using rw_malloc_wide = plain_allocator<creation::rw_malloc<wide_windows>>;

WARPHEAP_CONFORMANCE(rw_malloc_wide, rw_malloc_wide, conformance::contention::full);
#else
constexpr creation::rw_malloc_config wide_windows{
    .unit_bytes = 256, .aggregated_units = 2, .words_per_lane = 4, .walk_windows = 3, .group_words = 8};
using rw_malloc_wide = plain_allocator<creation::rw_malloc<wide_windows>>;

WARPHEAP_CONFORMANCE(rw_malloc_wide, rw_malloc_wide, conformance::contention::full, 37);

constexpr creation::rw_malloc_config large_units{
    .unit_bytes = 256, .aggregated_units = 2, .walk_windows = 3, .group_words = 8};
using rw_malloc_of_256 = plain_allocator<creation::rw_malloc<large_units>>;

WARPHEAP_CONFORMANCE(rw_malloc_256, rw_malloc_of_256, conformance::contention::full, 37);
#endif

}  // namespace
