// SPDX-License-Identifier: Apache-2.0
// A batch cut into one slice a member, as if each had received a part of it.
#pragma once

#include <vector>

#include "dynamic_graph.hpp"

namespace warpheap::tool {

/// Whole groups of the batch, in order, in `slices` slices with about as many targets each: every
/// group is in one.
std::vector<edge_groups> cut(edge_groups const& batch, u32 slices);

/// How many groups the slice with most of them has.
u64 most_groups_of(std::vector<edge_groups> const& slices);

}  // namespace warpheap::tool
