// SPDX-License-Identifier: Apache-2.0
// What is live while kernels run: the descriptors added up by class. Nothing is kept for it, so
// calls take no time for it.
#pragma once

#include "../report.hpp"
#include "table.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace slab_bitmap_parts {

/// Kernel: adds up what is reserved in the slabs. Blocks that a call reserves or frees at this
/// moment may count or not. `sums` is zero.
struct add_occupancy {
  WARPHEAP_DEVICE void operator()(slab_table table, occupancy_sums* sums) const {
    auto const geometry = table.geometry();
    u32 const first = static_cast<u32>(global_thread_index()), stride = simt::block_dim() * simt::grid_dim();
    // relaxed, all: each slab as it is now; no other is seen at the same moment.
    auto const add = [](u64& sum, u64 amount) { atomic_ref<u64>{sum}.fetch_add(amount, order::relaxed); };
    u64 present = 0;
    for (u64 i = first; i < geometry.slabs(); i += stride) {
      u32 const slab = static_cast<u32>(i);
      slab_state const now = table.load(slab);
      slab_header const header{table.header(slab).load(order::relaxed)};
      bool const is_run = now.kind() == slab_kind::run;
      if (is_run && header.is_absent()) continue;
      ++present;
      if (now.is_live()) {
        u32 const capacity = geometry.capacity(now.size_class());
        u32 const blocks = now.used() < capacity ? now.used() : capacity;  // no over-reservations
        if (blocks != 0) add(sums->blocks_of[now.size_class()], blocks);
      } else if (is_run && header.is_run()) {
        add(sums->runs, 1);
        add(sums->run_bytes, u64{header.length()} << geometry.slab_log2());
      }
    }
    add(sums->committed_bytes, present << geometry.slab_log2());
    if (first != 0) return;
    add(sums->failures, table.read_count(slab_table::count::failures));
    add(sums->largest_failed_bytes, table.read_count(slab_table::count::largest_failed_bytes));
  }
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::slab_bitmap_parts
