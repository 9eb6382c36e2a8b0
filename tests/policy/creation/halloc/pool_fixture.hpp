// SPDX-License-Identifier: Apache-2.0
// A halloc heap of a few slabs of 16 KiB, so that a few lanes can fill it, empty it and fight over
// it.
#pragma once

#include "policy/creation/quiet_pool_fixture.hpp"

namespace warpheap::test {

inline constexpr u64 halloc_slab_bytes = 16384;

/// Several rows on few slabs, short probes, and slabs that are soon sparse: they change hands all
/// the time.
inline constexpr creation::halloc_config few_slabs{
    .slab_bytes = 16384, .sparse_up_to = 500, .probes = 2, .check_every = 1, .slabs_per_row = 2, .counts_work = true};
using small_halloc = creation::halloc<few_slabs>;

/// Owns the memory of a pool; `Allocator` is a halloc.
template <class Allocator = small_halloc>
class halloc_pool : public quiet_pool<Allocator> {
 public:
  explicit halloc_pool(u32 slabs) : quiet_pool<Allocator>{slabs * halloc_slab_bytes} {}
  halloc_pool(u64 bytes, int) : quiet_pool<Allocator>{bytes} {}
};

/// Draws the bytes of a request: of one kind of chunks, or of any size, with large ones among them
/// if asked.
struct halloc_sizes {
  u32 least, doublings;
  u32 large_bytes = 0;  ///< of every fourth request, if not 0
  bool odd = false;     ///< half of the others are of the sizes between the doublings

  WARPHEAP_DEVICE u32 draw(random_sequence& random) const {
    if (large_bytes != 0 && random.below(4) == 0) return large_bytes;
    u32 const bytes = least << random.below(doublings + 1);
    return odd && random.below(2) == 0 ? bytes + bytes / 2 : bytes;
  }
};

using halloc_report = lanes_report;
using halloc_churn = tagged_churn<halloc_sizes>;

template <class Allocator>
halloc_report churned(halloc_pool<Allocator> const& pool, launch_shape shape, halloc_churn body) {
  return report_of(pool, shape, body);
}

}  // namespace warpheap::test
