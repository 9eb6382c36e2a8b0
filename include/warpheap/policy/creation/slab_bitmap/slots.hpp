// SPDX-License-Identifier: Apache-2.0
// How many blocks a share of the slabs could give: the parts that slot_survey.hpp puts together.
#pragma once

#include "../slot_survey.hpp"
#include "table.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace slab_bitmap_parts {

/// The blocks of a class that the slabs in [first, end) could give.
WARPHEAP_COLD inline slot_part count_blocks(slab_table table, u32 size_class, u32 first, u32 end) {
  u32 const capacity = table.geometry().capacity(size_class);
  slot_part part;
  WARPHEAP_NO_UNROLL
  for (u32 slab = first; slab < end; ++slab) {
    slab_state const now = table.load(slab);
    if (now.is_reclaimable()) part.count += capacity;
    else if (now.serves(size_class)) part.count += capacity - (now.used() < capacity ? now.used() : capacity);
  }
  return part;
}

/// The runs of `length` slabs among them.
WARPHEAP_COLD inline slot_part count_runs(slab_table table, u64 length, u32 first, u32 end) {
  free_runs runs{first, slots_of_length{length}};
  WARPHEAP_NO_UNROLL
  for (u32 slab = first; slab < end; ++slab) {
    bool const reclaimable = table.load(slab).is_reclaimable();
    runs.add(reclaimable, !reclaimable);
  }
  return runs.part();
}

}}}  // namespace warpheap::WARPHEAP_BACKEND::slab_bitmap_parts
