// SPDX-License-Identifier: Apache-2.0
// The expected result of a join, computed on the host and by another method: tuples are grouped by
// key, and their sums multiplied.
#pragma once

#include "settings.hpp"

namespace warpheap::tool {

/// Number and checksum of the result's tuples. Takes time in proportion to the tables, not to the
/// result.
join_sum reference_join(join_table const& build, join_table const& probe);

}  // namespace warpheap::tool
