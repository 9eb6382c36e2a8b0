// SPDX-License-Identifier: Apache-2.0
// UAlloc: an arena for each multiprocessor, which cuts large chunks into bins of 4 KiB. Each bin
// serves one size. Blocks are counted before they are looked for: a class's bulk semaphore says
// that there are some, or which caller is to make a bin. The bin is then found in a list that is
// walked without a lock. Blocks never lie at multiples of 4 KiB, so an allocator whose larger
// blocks always do can tell the two apart.
//
// This policy is UAlloc alone, over a set of chunks that fills the pool; it refuses what is larger
// than its largest class. `throughput` has the same bins over TBuddy's chunks.
//
// Cost: one operation each on a semaphore, a list and a bitmap for a warp, and two on the list's
// reader count. A bin of 4 KiB loses 128 bytes, which blocks above 128 bytes round up to one block.
// Source: Gelado and Garland 2019, section 4.2: docs/design/ualloc.md says what differs.
#pragma once

#include "report.hpp"
#include "shared/bins/allocator.hpp"
#include "shared/bins/plan.hpp"
#include "shared/bins/slots.hpp"
#include "shared/policy_base.hpp"
#include "shared/pool_units.hpp"
#include "ualloc/chunk_set.hpp"
#include "ualloc/snapshot.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace creation {

/// A handle on a heap: 24 bytes, trivially copyable; all copies serve the same heap. Tests replace
/// `Layout` and `Faults` with faulty ones.
template <ualloc_config Config = ualloc_config{}, class Layout = bins::layout<Config>, class Faults = bins::no_faults>
class ualloc : public policy_base<ualloc<Config, Layout, Faults>, bins::table<Layout>> {
  using table_type = bins::table<Layout>;
  using base_type = policy_base<ualloc, table_type>;
  using base_type::table_, base_type::refuse;
  using supply_type = ualloc_parts::chunk_set<Layout>;
  using allocator_type = bins::bin_allocator<Layout, supply_type, Faults>;
  using slots_type = bins::slot_counter<Layout, supply_type, Faults>;

 public:
  static constexpr char const* name = "ualloc";
  static constexpr ualloc_config config = Config;
  // Wide bins' blocks lie at multiples of 128, whatever size is asked for. Sizes are rounded up to
  // a power of two, so the limit for those is also the limit for multiples.
  static constexpr size_t aligned_up_to = Config.wide_bins ? 128 : Layout::self_aligned_up_to;
  static constexpr allocator_traits traits{.alignment = Config.least_bytes,
                                           .self_aligned_up_to = aligned_up_to,
                                           .multiples_aligned_up_to = aligned_up_to,
                                           .detects_misuse = true,
                                           .exact_out_of_memory = true,
                                           .largest_bytes = Layout::largest_bytes};

  /// A block of at least `bytes` bytes; nullptr for 0, for more than the largest class has, and
  /// when there is none. Any lanes, converged or not.
  WARPHEAP_DEVICE void* create(size_t bytes) const {
    if (bytes == 0) return nullptr;
    if (bytes > Layout::largest_bytes) return refuse();
    u32 const size_class = Layout::class_of(static_cast<u32>(bytes));
    return allocator().create(group_by(simt::active_mask(), allocator().key_of(size_class)), size_class);
  }

  /// As create(), at a multiple of `alignment`, a power of two. An alignment that blocks do not
  /// have is refused.
  WARPHEAP_DEVICE void* create_aligned(size_t alignment, size_t bytes) const {
    size_t const both = bytes > alignment ? bytes : alignment;
    if (bytes == 0 || both <= Layout::self_aligned_up_to) return create(bytes == 0 ? 0 : both);
    return alignment <= bins::header_bytes ? create(bytes) : refuse();
  }

  /// As create(), for all lanes of `mask` at once, each with its own size. All call with the same
  /// mask.
  WARPHEAP_DEVICE void* create_warp(lane_mask mask, size_t bytes) const {
    bool const fits = bytes != 0 && bytes <= Layout::largest_bytes;
    lane_mask const together = simt::ballot(mask, fits);
    if (!fits) return create(bytes);
    u32 const size_class = Layout::class_of(static_cast<u32>(bytes));
    return allocator().create(group_by(together, allocator().key_of(size_class)), size_class);
  }

  /// Gives a block back. Any lanes, converged or not. nullptr does nothing; a pointer to no live
  /// block is counted and ignored.
  WARPHEAP_DEVICE void destroy(void* memory) const {
    if (memory) allocator().destroy(memory);
  }

  /// Bytes of the live block at `memory`; 0 if there is none.
  WARPHEAP_DEVICE size_t usable_size(void const* memory) const { return allocator().usable_size(memory); }

  /// For slot_survey.hpp, which counts in parts.
  WARPHEAP_HOST_DEVICE u64 slot_places() const { return table_.arenas(); }
  WARPHEAP_DEVICE void gather_slots(size_t bytes, slot_share share) const {
    if (bytes != 0 && bytes <= Layout::largest_bytes) slots_type{table_}.gather(share);
  }
  WARPHEAP_DEVICE slot_part count_slots(size_t bytes, slot_share share) const {
    if (bytes == 0 || bytes > Layout::largest_bytes) return {};
    return slots_type{table_}.count(Layout::class_of(static_cast<u32>(bytes)), share);
  }

  /// Bytes to reserve for a pool of `pool_bytes`: its chunks, their metadata, and room to align
  /// them. Throws std::invalid_argument if that is less than one chunk.
  WARPHEAP_HOST static size_t required_bytes(size_t pool_bytes) {
    auto const planned = plan(pool_bytes);
    return planned.pool_bytes() + metadata_bytes(planned) + bins::page_bytes;
  }

  /// The heap in memory of required_bytes(pool_bytes) bytes, which may start anywhere. initialize()
  /// must follow.
  WARPHEAP_HOST static ualloc place(void* memory, size_t pool_bytes) {
    auto const planned = plan(pool_bytes);
    auto* const pool = reinterpret_cast<u8*>(align_up(reinterpret_cast<u64>(memory), bins::page_bytes));
    ualloc made;
    made.table_ = planned.template table<Layout>(pool, pool + planned.pool_bytes());
    return made;
  }

  /// Makes everything free, in order on stream `on`; does not wait.
  WARPHEAP_HOST void initialize(stream_view on) const {
    backend::fill_bytes(table_.words(), 0, table_.words_bytes() + supply_type::words_bytes(table_.chunks()), on);
    launch(on, {1, 1}, bins::write_place{}, table_, supply_type{table_.as_far()});
  }

  WARPHEAP_HOST size_t metadata_bytes() const {
    return table_.words_bytes() + supply_type::words_bytes(table_.chunks());
  }

#if !defined(__CUDACC_RTC__)
  /// A copy of the heap's state, which answers the host's questions: report.hpp.
  ualloc_parts::snapshot<Layout> snapshot() const { return ualloc_parts::snapshot<Layout>{table_}; }
#endif

 private:
  WARPHEAP_HOST static bins::pool_plan plan(size_t pool_bytes) {
    auto const planned = bins::plan_pool(pool_bytes, Config, backend::multiprocessors());
    if (planned.chunks == 0) refuse_pool("ualloc", pool_bytes, "less than the smallest chunk");
    return planned;
  }
  WARPHEAP_HOST static size_t metadata_bytes(bins::pool_plan const& planned) {
    return table_type::words_bytes(planned.chunks, planned.arenas) + supply_type::words_bytes(planned.chunks);
  }

  WARPHEAP_DEVICE allocator_type allocator() const { return allocator_type{table_}; }
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::creation
