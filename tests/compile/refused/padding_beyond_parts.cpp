// SPDX-License-Identifier: Apache-2.0
// refused: alignment_serves_distribution, warp_coalesce, shrink
#include <warpheap/warpheap.hpp>

using namespace warpheap;

struct well_aligned : creation::slab_bitmap<> {
  static constexpr allocator_traits traits{.alignment = 64};
};

using wrong = allocator<well_aligned, distribution::warp_coalesce, oom::return_null, reserve_pool::device_memory,
                        alignment::shrink<64>>;
wrong* never;
