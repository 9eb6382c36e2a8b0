// SPDX-License-Identifier: Apache-2.0
// A random order of many items on all cores: each item draws one of many buckets, and every bucket
// is shuffled by itself in the cache. All orders are as likely as by a shuffle of single items,
// every step of which misses the cache. Source: Sanders, Random permutations on distributed,
// external and hierarchical memory, 1998.
#pragma once

#include "edge_list.hpp"

namespace warpheap::tool {

/// The first `size` items of a random order of `items`, which has at least as many. The order
/// depends on the seed and on the items alone.
edges_array random_order(edges_array const& items, u64 size, u64 seed, parallel_work& work);

/// The passes that random_order() makes.
inline constexpr u64 random_order_passes = 3;

}  // namespace warpheap::tool
