// What a join must come to, computed on the host and by another way: tuples of a key together, sums
// of them multiplied.
#pragma once

#include "backend/backend.hpp"

namespace warpheap::tool {

/// Number and checksum of the result's tuples. Takes time in proportion to the tables, not to the
/// result.
join_sum reference_join(join_table const& build, join_table const& probe);

}  // namespace warpheap::tool
