// SPDX-License-Identifier: Apache-2.0
// Which slabs there are: set-up, and pools whose memory comes and goes while the heap is in use.
//
// An absent slab, one without memory, looks like part of a run that another thread holds.
//
//   slab.R3  absent: kind run, with the header of a run of no slabs. Part of no run, in no index,
//       all bits zero (slab.D7). A slab becomes absent through locked, and ceases to be as a run
//       does (slab.R1).
//   slab.R4  `present` bytes of the pool have memory before the slabs there cease to be absent, and
//       keep it until they are absent again. A reset reads `present`: a CUDA graph that holds one
//       sees how far the pool has grown since.
#pragma once

#include "lock.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace slab_bitmap_parts {

/// Calls `visit(slab)` for this thread's share of the slabs in [first, end).
template <class Visitor>
WARPHEAP_DEVICE void for_each_slab(u32 first, u32 end, Visitor visit) {
  u32 const stride = simt::block_dim() * simt::grid_dim();
  for (u64 slab = first + global_thread_index(); slab < end; slab += stride) visit(static_cast<u32>(slab));
}

/// Kernel: fills what is not zero in untouched metadata. That is free_slabs, reclaimable, the
/// limits in per-SM caches, and absent slabs, which begin at `present` bytes. Without it none are.
struct fill_metadata {
  WARPHEAP_DEVICE void operator()(slab_table table, u64 const* present) const {
    auto const geometry = table.geometry();
    u32 const stride = simt::block_dim() * simt::grid_dim(), first = static_cast<u32>(global_thread_index());
    auto const fill = [&](u64* words, u32 bits) {
      for (u32 i = first; i < slab_index::width(bits); i += stride)
        atomic_ref<u64>{words[i]}.store(low_mask(bits - 64 * i < 64 ? bits - 64 * i : 64), order::relaxed);
    };
    auto const fill_summary = [&](u64* words, u32 named) {
      constexpr u32 each = slab_index::words_a_summary;
      for (u32 i = first; i < slab_index::summaries(named); i += stride) {
        u32 const left = slab_index::width(named) - each * i;
        atomic_ref<u64>{words[i]}.store(low_mask(left < each ? left : each), order::relaxed);
      }
    };
    u32 const slabs = present ? static_cast<u32>(*present >> geometry.slab_log2()) : geometry.slabs();
    fill(table.index_words(slab_table::reclaimable), slabs);
    fill_summary(table.index_words(slab_table::reclaimable) + slab_index::width(geometry.slabs()), slabs);
    fill(table.index_words(slab_table::free_slabs), slabs);
    fill(table.index_words(slab_table::free_slabs) + slab_index::width(geometry.slabs()), slab_index::width(slabs));
    for_each_slab(slabs, geometry.slabs(), [&](u32 absent) {
      table.state(absent).store(slab_state::of(slab_kind::run, 0).word, order::relaxed);
      table.header(absent).store(slab_header::absent().word, order::relaxed);
    });
    for (u32 entry = first; entry < geometry.sm_caches() * geometry.classes(); entry += stride) {
      slab_limits const limits{geometry.capacity(entry % geometry.classes())};
      atomic_ref<u64>{table.cache_words(entry)[1]}.store(u64{limits.capacity} << 32 | limits.high, order::relaxed);
    }
  }
};

/// An absent slab becomes free, beside whatever else runs; any other stays as it is (slab.R3).
WARPHEAP_DEVICE inline void free_absent_slab(slab_table const& table, u32 slab) {
  u64 header = slab_header::absent().word;
  // relaxed: a look. acquire: the slab was made a run before (slab.R3); pairs with take_slabs_away.
  if (table.header(slab).load(order::relaxed) != header) return;
  if (!table.header(slab).compare_exchange(header, slab_header{}.word, order::acquire, order::relaxed)) return;
  slab_lock::unlock(table, slab, slab_kind::run, order::release);
}

/// Kernel: the absent slabs in [first, end) become free. Again: does nothing.
struct free_absent_slabs {
  WARPHEAP_DEVICE void operator()(slab_table table, u32 first, u32 end, u64* present) const {
    for_each_slab(first, end, [&](u32 slab) { free_absent_slab(table, slab); });
    // relaxed: a reset that reads it is a later kernel. The maximum: growth may come in any order.
    if (global_thread_index() == 0)
      atomic_ref<u64>{*present}.fetch_max(u64{end} << table.geometry().slab_log2(), order::relaxed);
  }
};

/// Kernel: raises `end` to the end of the last slab before `slabs` that is in use, in bytes.
struct find_used_end {
  WARPHEAP_DEVICE void operator()(slab_table table, u32 slabs, u64* end) const {
    for_each_slab(0, slabs, [&](u32 slab) {
      // relaxed, both: no other kernel runs.
      if (!table.load(slab).is_reclaimable())
        atomic_ref<u64>{*end}.fetch_max(u64{slab + 1} << table.geometry().slab_log2(), order::relaxed);
    });
  }
};

/// Kernel: unused slabs in [first, end) become absent; counts those that stay.
struct take_slabs_away {
  WARPHEAP_DEVICE void operator()(slab_table table, u32 first, u32 end, u64* stay) const {
    for_each_slab(first, end, [&](u32 slab) {
      if (slab_lock::take(table, slab)) {
        slab_lock::make_run(table, slab);
        // release: the slab is a run first (slab.R3); pairs with free_absent_slab().
        table.header(slab).store(slab_header::absent().word, order::release);
      } else {
        atomic_ref<u64>{*stay}.fetch_add(1, order::relaxed);
      }
    });
  }
};

/// Slabs [0, bytes) of the table.
WARPHEAP_HOST_DEVICE inline u32 slabs_in(slab_table const& table, u64 bytes) {
  return static_cast<u32>(bytes >> table.geometry().slab_log2());
}

/// A grid for `slabs` slabs.
WARPHEAP_HOST constexpr launch_shape shape_for(u32 slabs) { return {slabs < 1024 ? 1u : 64u, 256}; }

/// Makes every slab that is present free, and forgets everything else, in order on stream `on`.
WARPHEAP_HOST inline void initialize_table(slab_table const& table, stream_view on, u64 const* present) {
  auto const geometry = table.geometry();
  backend::fill_bytes(table.metadata(), 0, geometry.metadata_bytes(), on);
  launch(on, shape_for(geometry.slabs()), fill_metadata{}, table, present);
}

}}}  // namespace warpheap::WARPHEAP_BACKEND::slab_bitmap_parts
