// SPDX-License-Identifier: Apache-2.0
// The default allocator. The pool is cut into slabs of one size class at a time, each with a bitmap
// of its blocks. A request reserves blocks by an addition to the slab's descriptor, then claims
// them in the bitmap, once for all lanes of a warp that ask for one class. A larger block is a run
// of slabs. nullptr: no suitable block stayed free during the whole call
// (docs/design/slab_bitmap.md).
// Cost: 0.9% of the pool; a cache load, an addition and a bitmap operation a warp with room.
// Sources: Gelado & Garland 2019 (two stages), Halloc (slabs left early), ScatterAlloc (places),
// Pham et al. 2022 (whole words claimed), XMalloc (lanes served together); the protocol is ours.
#pragma once

#include "../memory_range.hpp"
#include "report.hpp"
#include "shared/policy_base.hpp"
#include "slab_bitmap/config.hpp"
#include "slab_bitmap/occupancy.hpp"
#include "slab_bitmap/presence.hpp"
#include "slab_bitmap/release.hpp"
#include "slab_bitmap/service.hpp"
#include "slab_bitmap/slots.hpp"
#include "slab_bitmap/snapshot.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace creation {

/// A handle on a heap: 16 bytes, trivially copyable; all copies serve the same heap.
template <slab_bitmap_config Config = slab_bitmap_config{}>
class slab_bitmap : public policy_base<slab_bitmap<Config>, slab_bitmap_parts::slab_table> {
  static_assert(is_valid(Config), "slab_bitmap: slabs are 16 KiB to 2 MiB");
  using block_release = slab_bitmap_parts::block_release;
  using block_service = slab_bitmap_parts::block_service;
  using slab_geometry = slab_bitmap_parts::slab_geometry;
  using slab_runs = slab_bitmap_parts::slab_runs;
  using slab_table = slab_bitmap_parts::slab_table;
  using base_type = policy_base<slab_bitmap, slab_table>;
  using base_type::table_;

 public:
  static constexpr char const* name = "slab_bitmap";
  static constexpr slab_bitmap_config config = Config;
  static constexpr allocator_traits traits{.alignment = 16,
                                           .self_aligned_up_to = 4096,
                                           .multiples_aligned_up_to = 4096,
                                           .detects_misuse = true,
                                           .exact_out_of_memory = true,
                                           .one_pass_refusals = true,
                                           .whole_pool = true};
  static constexpr bool pool_may_grow = true;
  static constexpr bool adds_up = true;

  /// A block of `bytes` bytes or more; nullptr for 0 or if none. Any lanes, converged or not.
  WARPHEAP_DEVICE void* create(size_t bytes) const {
    // Also where `bytes` is 0.
    bool const is_block = bytes >> 32 == 0 && static_cast<u32>(bytes) - 1 < slab_bytes();
    if (!is_block) return bytes == 0 ? nullptr : slab_runs::create(table_, bytes, 1);
    return block_service{here()}.create(simt::active_mask(), size_class_of(bytes), class_bytes_for(bytes));
  }

  /// As create(), at a multiple of `alignment`, a power of two.
  WARPHEAP_DEVICE void* create_aligned(size_t alignment, size_t bytes) const {
    if (bytes == 0) return nullptr;
    if (bytes > slab_bytes() || alignment > slab_bytes()) return slab_runs::create(table_, bytes, alignment);
    u32 const size_class = aligned_size_class(alignment, bytes);
    return block_service{here()}.create(simt::active_mask(), size_class, class_bytes(size_class));
  }

  /// As create(), each lane with its own size. All lanes of `mask` call together, with one mask.
  WARPHEAP_DEVICE void* create_warp(lane_mask mask, size_t bytes) const {
    bool const is_small = bytes != 0 && bytes <= slab_bytes();
    lane_mask const together = simt::ballot(mask, is_small);
    if (!is_small) return create(bytes);
    return block_service{here()}.create(together, size_class_of(bytes), class_bytes_for(bytes));
  }

  /// Frees a block. nullptr does nothing; what is no live block is counted and ignored. Any lanes.
  WARPHEAP_DEVICE void destroy(void* memory) const {
    if (memory) block_release{here()}(memory);
  }

  /// Bytes of the live block at `memory`; 0 if it is none.
  WARPHEAP_DEVICE size_t usable_size(void const* memory) const { return block_release{table_}.usable_size(memory); }

  /// Makes blocks of bytes in [from, to) of a pool that grows, which have memory. Any lane alone.
  WARPHEAP_DEVICE void add_committed(u64 from, u64 to) const {
    u32 const end = slabs_in(table_, to);
    WARPHEAP_NO_UNROLL
    for (u32 slab = slabs_in(table_, from); slab < end; ++slab) slab_bitmap_parts::free_absent_slab(table_, slab);
  }

  /// For slot_survey.hpp, which counts in parts.
  WARPHEAP_HOST_DEVICE u64 slot_places() const { return geometry().slabs(); }
  WARPHEAP_DEVICE slot_part count_slots(size_t bytes, slot_share share) const {
    u32 const first = static_cast<u32>(share.first(slot_places())), end = static_cast<u32>(share.end(slot_places()));
    if (bytes == 0) return {};
    return bytes <= slab_bytes() ? count_blocks(table_, size_class_of(bytes), first, end)
                                 : count_runs(table_, geometry().slabs_for(bytes), first, end);
  }
  WARPHEAP_HOST_DEVICE u64 slots_of_run(size_t bytes, u64, u64 length) const {
    return length / geometry().slabs_for(bytes);
  }

  WARPHEAP_HOST static slab_geometry plan(size_t pool_bytes) {
    return slab_bitmap_parts::slab_geometry_for(pool_bytes, backend::multiprocessors(), Config.max_slab_log2);
  }

  /// Makes everything free, in order on stream `on`; does not wait. Of a pool that grows, the first
  /// `*present` bytes, in device memory, have memory at that time.
  WARPHEAP_HOST void initialize(stream_view on, u64 const* present = nullptr) const {
    initialize_table(table_, on, present);
  }

  /// The pool, of which the policy reads and writes no byte.
  WARPHEAP_HOST memory_range untouched_pool() const { return {table_.pool(), table_.pool_bytes()}; }
  /// A pool of which the bytes in [from, to) have memory now: blocks are made of them, in order on
  /// stream `on`, and `*present` is raised to `to`.
  WARPHEAP_HOST void extend(u64 from, u64 to, u64* present, stream_view on) const {
    launch(on, slab_bitmap_parts::shape_for(slabs_in(table_, to - from)), slab_bitmap_parts::free_absent_slabs{},
           table_, slabs_in(table_, from), slabs_in(table_, to), present);
  }
  /// Raises `*end` to the end of the last slab in use, of those before `present` bytes.
  WARPHEAP_HOST void find_used_end(u64 present, u64* end) const {
    u32 const slabs = slabs_in(table_, present);
    launch(slab_bitmap_parts::shape_for(slabs), slab_bitmap_parts::find_used_end{}, table_, slabs, end);
  }
  /// No blocks are made of the bytes in [from, to) from now on. Adds to `*stay` the slabs there
  /// that are in use, and remain so.
  WARPHEAP_HOST void decommit(u64 from, u64 to, u64* stay) const {
    launch(slab_bitmap_parts::shape_for(slabs_in(table_, to - from)), slab_bitmap_parts::take_slabs_away{}, table_,
           slabs_in(table_, from), slabs_in(table_, to), stay);
  }
#if !defined(__CUDACC_RTC__)
  /// Adds to `*sums`, which is zero, what is live, in order on stream `on`, beside whatever runs.
  void add_occupancy(occupancy_sums* sums, stream_view on) const {
    launch(on, {16, 256}, slab_bitmap_parts::add_occupancy{}, table_, sums);
  }
  /// A copy of the heap's state, which answers the host's questions: report.hpp.
  slab_bitmap_parts::snapshot snapshot() const { return slab_bitmap_parts::snapshot{table_}; }
#endif

  WARPHEAP_HOST_DEVICE slab_geometry geometry() const { return table_.geometry(); }

 private:
  WARPHEAP_DEVICE u32 slab_bytes() const { return geometry().slab_bytes(); }
  /// The table for one call: what is derived of its sizes is not kept from call to call. In a loop
  /// that took 15 registers, and a third of the warps of a multiprocessor.
  WARPHEAP_DEVICE slab_table here() const { return table_.opaque(); }
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::creation
