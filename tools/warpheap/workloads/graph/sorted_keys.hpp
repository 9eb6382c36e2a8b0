// SPDX-License-Identifier: Apache-2.0
// Adjacency entries as sorted numbers, on all cores: a graph of a hundred million of them is sorted
// twice, and std::sort on one core takes 10 s each time. Radix sort, from the lowest digits up: its
// time does not depend on the order of the keys or on hubs.
#pragma once

#include "workloads/large_array.hpp"
#include "workloads/parallel_work.hpp"

namespace warpheap::tool {

/// Ascending numbers, `from` in the upper half and `to` in the lower: the common form of batches
/// and of the reference.
using entry_keys = large_array<u64>;

/// Sorts, and keeps one of those that are equal. Halves are below `limit`. Takes memory for as many
/// keys again.
void sort_unique(entry_keys& keys, u64 limit, parallel_work& work);

/// The most passes that sort_unique() makes.
u64 sort_passes(u64 limit);

}  // namespace warpheap::tool
