// SPDX-License-Identifier: Apache-2.0
// Halloc: slabs of chunks, one bit for each chunk, and a hash of a counter that says where to look.
// The c-th request of a size looks at places of its own in the head, the slab from which its row
// takes blocks. So requests of one moment rarely meet, and a fresh slab is filled without a
// collision. A head is replaced before it is full, while other requests take the rest of it.
//
// Chunks are 16, 24, 256 or 384 bytes, blocks 1, 2, 4 or 8 of them: sixteen sizes from 16 bytes to
// 3 KiB. All chunks of a slab are of one kind, but its blocks may have several lengths. Larger
// blocks come from TBuddy. The slabs are blocks of TBuddy too, so memory goes where it is wanted; a
// fixed split, as in the paper, is an option.
//
// Cost: 1.9% of the pool in metadata. Lanes of a warp that ask for one size pay an addition to the
// row's counter, one to the head's count, and one bitmap operation for each run of places. The
// pool's memory is spread over four kinds of chunks and the rows' heads; a search collects it from
// all of them when it is needed. nullptr: no suitable block stayed free during the whole call.
// Source: Adinetz and Pleiter 2014. What differs: docs/design/halloc.md.
#pragma once

#include "halloc/large_search.hpp"
#include "halloc/release.hpp"
#include "halloc/service.hpp"
#include "halloc/slots.hpp"
#include "halloc/snapshot.hpp"
#include "report.hpp"
#include "shared/policy_base.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace creation {

/// A handle on a heap: 40 bytes, trivially copyable; all copies serve the same heap.
template <halloc_config Config = halloc_config{}, class Faults = halloc_parts::no_faults>
class halloc : public policy_base<halloc<Config, Faults>, halloc_parts::table<Config, Faults>> {
  static_assert(is_valid(Config),
                "halloc: slabs are a power of two of 16 KiB to 8 MiB; sparse_up_to < busy_above < replace_at <= 1000; "
                "the hash has runs of 1, 2, 4 or 8 places, a prime below 256 as multiplier, a step of 1 or more and a "
                "modulus of 2 to 1,023; probes, check_every and slabs_per_row are 1 or more; rows are a power of two "
                "up to 256; split_percent is at most 95");
  using table_type = halloc_parts::table<Config, Faults>;
  using base_type = policy_base<halloc, table_type>;
  using base_type::table_, base_type::key_of;
  using service_type = halloc_parts::block_service<table_type>;
  using release_type = halloc_parts::block_release<table_type>;
  using large_search_type = halloc_parts::large_search<table_type>;
  using large_type = halloc_parts::large_heap;
  using slab_state = halloc_parts::slab_state;
  using count = halloc_parts::count;

 public:
  static constexpr char const* name = Config.split_percent != 0 ? "halloc_split" : "halloc";
  static constexpr halloc_config config = Config;
  // A size that is a power of two is aligned to itself, a size half way between two of them to a
  // third of itself. No request that is a multiple of more than that third is rounded up to such a
  // size.
  static constexpr allocator_traits traits{.alignment = 8,
                                           .self_aligned_up_to = size_t{1} << 20,
                                           .multiples_aligned_up_to = size_t{1} << 20,
                                           .detects_misuse = true,
                                           .exact_out_of_memory = true,
                                           .one_pass_refusals = true};
  static constexpr bool pool_may_grow = Config.split_percent == 0;

  /// A block of at least `bytes` bytes; nullptr for 0, and when there is none. Any lanes, converged
  /// or not.
  WARPHEAP_DEVICE void* create(size_t bytes) const {
    if (bytes == 0) return nullptr;
    if (bytes > halloc_parts::largest_bytes) return create_large(bytes);
    return create_size(halloc_parts::size_for(static_cast<u32>(bytes)));
  }

  /// A block of at least `bytes` bytes at a multiple of `alignment`, a power of two; else as
  /// create().
  WARPHEAP_DEVICE void* create_aligned(size_t alignment, size_t bytes) const {
    if (bytes == 0) return nullptr;
    u32 const size = halloc_parts::aligned_size_for(alignment, bytes);
    if (size < halloc_parts::sizes) return create_size(size);
    return alignment <= large_page ? create_large(bytes) : create_large_aligned(alignment, bytes);
  }

  /// create() for all lanes of `mask` at once, each with its own size. All call with the same mask.
  WARPHEAP_DEVICE void* create_warp(lane_mask mask, size_t bytes) const {
    bool const is_small = bytes != 0 && bytes <= halloc_parts::largest_bytes;
    lane_mask const together = simt::ballot(mask, is_small);
    if (!is_small) return create(bytes);
    u32 const size = halloc_parts::size_for(static_cast<u32>(bytes));
    return service_type{table_}.serve(together, group_by(together, key_of(size)), size);
  }

  /// Gives a block back. Any lanes, converged or not. nullptr does nothing; a pointer to no live
  /// block is counted and ignored.
  WARPHEAP_DEVICE void destroy(void* memory) const {
    if (!memory) return;
    // The role of a live block's slab does not change, so such a pointer takes two rounds at most.
    // Any other takes one more round for each change of the role.
    WARPHEAP_NO_UNROLL
    for (u32 role = role_at(memory); !try_destroy(memory, role);) {
      role = count_misuse(table_, memory, role);
      if (role == counted) return;
      // The second round is rare: the compiler is to keep nothing in registers for it.
      memory = reinterpret_cast<void*>(opaque(reinterpret_cast<u64>(memory)));
    }
  }

  /// Bytes of the live block at `memory`; 0 if it is none.
  WARPHEAP_DEVICE size_t usable_size(void const* memory) const {
    u32 role = role_at(memory);
    for (;;) {
      size_t const bytes = size_at(memory, role);
      u32 const seen = role;
      if (bytes == 0) role = newest_role(table_, memory);
      if (role == seen) return bytes;
    }
  }
  /// Whether `memory` lies in the pool.
  WARPHEAP_DEVICE bool contains(void const* memory) const {
    return table_.large().contains(memory) || table_.slab_at(table_.offset_of(memory)) < table_.slabs();
  }

  /// For slot_survey.hpp, which counts in parts.
  WARPHEAP_HOST_DEVICE u64 slot_places() const { return table_.slabs(); }
  /// Gives unused slabs to TBuddy before large blocks are counted, which are TBuddy's.
  WARPHEAP_DEVICE void gather_slots(size_t bytes, slot_share share) const {
    if constexpr (Config.split_percent == 0)
      if (bytes > halloc_parts::largest_bytes) halloc_parts::return_unused(table_, share);
  }
  WARPHEAP_DEVICE slot_part count_slots(size_t bytes, slot_share share) const {
    if (bytes == 0) return {};
    if (bytes > halloc_parts::largest_bytes) return table_.large().count_slots(bytes, share);
    return halloc_parts::count_blocks(table_, halloc_parts::size_for(static_cast<u32>(bytes)), share);
  }

  /// Makes blocks of bytes in [from, to) of a pool that grows, which have memory. Any lane alone.
  WARPHEAP_DEVICE void add_committed(u64 from, u64 to) const { table_.large().add_committed(from, to); }

  /// Bytes to reserve for a pool of `pool_bytes`: its memory, its metadata, and room to align them.
  /// Throws std::invalid_argument as plan_for() does.
  WARPHEAP_HOST static size_t required_bytes(size_t pool_bytes) {
    auto const planned = halloc_parts::plan_for(pool_bytes, Config, backend::multiprocessors());
    return planned.total_bytes();
  }

  /// The heap in memory of required_bytes(pool_bytes) bytes, which may start anywhere. initialize()
  /// must follow.
  WARPHEAP_HOST static halloc place(void* memory, size_t pool_bytes) {
    auto const planned = halloc_parts::plan_for(pool_bytes, Config, backend::multiprocessors());
    halloc made;
    auto const large = large_type::place(memory, planned.large_bytes);
    u8* const pool = planned.split ? planned.slabs_at(memory) : large.table().pool();
    made.table_ = table_type{planned.metadata_at(memory), pool, planned.geometry, large};
    return made;
  }

  /// Makes everything free, in order on stream `on`; does not wait. Of a pool that grows, the first
  /// `*committed` bytes, in device memory, have memory at that time.
  WARPHEAP_HOST void initialize(stream_view on, u64 const* committed = nullptr) const {
    table_.large().initialize(on, committed);
    backend::fill_bytes(table_.metadata(), 0, table_.geometry().metadata_bytes(), on);
    launch(on, {1, 256}, halloc_parts::fill_rows{}, table_);
  }

  WARPHEAP_HOST size_t pool_bytes() const {
    u64 const slabs = u64{table_.slabs()} << table_.geometry().slab_log2();
    return table_.large().pool_bytes() + (Config.split_percent != 0 ? slabs : 0);
  }
  WARPHEAP_HOST size_t metadata_bytes() const {
    return table_.large().metadata_bytes() + table_.geometry().metadata_bytes();
  }

  /// The pool, of which the policy reads and writes no byte, where it is in one piece.
  WARPHEAP_HOST memory_range untouched_pool() const requires(Config.split_percent == 0) {
    return table_.large().untouched_pool();
  }

  // A growing pool is TBuddy's, which has the same members.
  WARPHEAP_HOST void extend(u64 from, u64 to, u64* committed, stream_view on) const {
    table_.large().extend(from, to, committed, on);
  }
  WARPHEAP_HOST void decommit(u64 from, u64 to, u64* stay) const { table_.large().decommit(from, to, stay); }

#if !defined(__CUDACC_RTC__)
  WARPHEAP_HOST void find_used_end(u64 committed, u64* end) const {
    gather_slots_by_grid(*this, halloc_parts::largest_bytes + 1);  // unused slabs go back to TBuddy
    table_.large().find_used_end(committed, end);
  }

  /// A copy of the heap's state, which answers the host's questions: report.hpp.
  halloc_parts::snapshot<table_type> snapshot() const {
    return halloc_parts::snapshot<table_type>{table_, metadata_bytes()};
  }
  /// What the heap has done, if its configuration says counts_work.
  halloc_work work() const { return halloc_parts::work_counts{table_}.read(); }
  /// Sets these counts to 0, in order on stream `on`; does not wait.
  void clear_work(stream_view on) const { halloc_parts::work_counts{table_}.clear(on); }
#endif

 private:
  static constexpr size_t large_page = 4096;

  WARPHEAP_DEVICE void* create_size(u32 size) const {
    lane_mask const active = simt::active_mask();
    return service_type{table_}.serve(active, group_by(active, key_of(size)), size);
  }

  WARPHEAP_DEVICE static void* refuse(table_type const& table) {
    table.add_count(count::failures, 1);
    return nullptr;
  }

  WARPHEAP_DEVICE void* create_large(size_t bytes) const {
    u32 const order = large_type::order_for(bytes);
    if (order > table_.large().top_order()) return refuse(table_);
    void* const memory = table_.large().create(bytes);
    return memory ? memory : create_large_slowly(table_, order);
  }
  WARPHEAP_COLD static void* create_large_slowly(table_type table, u32 order) {
    lane_group const group = group_by(simt::active_mask(), reinterpret_cast<u64>(table.metadata()) + order);
    void* const memory = Config.split_percent != 0 ? nullptr : large_search_type::run(table, group.mask, order, 0);
    return memory ? memory : refuse(table);
  }

  WARPHEAP_DEVICE void* create_large_aligned(size_t alignment, size_t bytes) const {
    u32 const order = large_type::order_for(bytes), aligned = large_type::order_for(alignment);
    bool const fits = reinterpret_cast<u64>(table_.large().table().pool()) % alignment == 0;
    if (!fits || aligned > table_.large().top_order()) return refuse(table_);
    if (aligned <= order) return create_large(bytes);
    void* const memory = table_.large().create_aligned(alignment, bytes);
    return memory ? memory : create_large_aligned_slowly(table_, alignment, order);
  }
  WARPHEAP_COLD static void* create_large_aligned_slowly(table_type table, size_t alignment, u32 order) {
    lane_mask const alone = lane_bit(simt::lane_id());
    void* const memory = Config.split_percent != 0 ? nullptr : large_search_type::run(table, alone, order, alignment);
    return memory ? memory : refuse(table);
  }

  /// The role of the slab that `memory` lies in; 0 where no slab may lie.
  WARPHEAP_DEVICE u32 role_at(void const* memory) const {
    u64 const slab = table_.slab_at(table_.offset_of(memory));
    // relaxed: a hint, which may be stale if the pointer came by a shuffle or a relaxed operation.
    // A word itself names its kind (halloc.C5), and TBuddy knows its own blocks; before a pointer
    // is called misuse, newest_role() looks again.
    return slab < table_.slabs() ? table_.role(static_cast<u32>(slab)).load(order::relaxed) : 0;
  }
  WARPHEAP_DEVICE static halloc_parts::block_address address_at(table_type const& table, void const* memory, u32 role) {
    u64 const offset = table.offset_of(memory);
    return release_type{table}.locate(static_cast<u32>(table.slab_at(offset)), offset, role - 1);
  }

  /// The newest value of that role, by a read-modify-write.
  WARPHEAP_DEVICE static u32 newest_role(table_type const& table, void const* memory) {
    u64 const slab = table.slab_at(table.offset_of(memory));
    return slab < table.slabs() ? table.role(static_cast<u32>(slab)).fetch_or(0, order::relaxed) : 0;
  }
  /// For a pointer at which no block is live by the role `seen`: returns the newest role if that is
  /// another one; else counts the misuse and returns `counted`.
  WARPHEAP_COLD static u32 count_misuse(table_type table, void const* memory, u32 seen) {
    u32 const role = newest_role(table, memory);
    if (role != seen) return role;
    if (role == 0) {
      table.large().count_misuse(memory);
      return counted;
    }
    halloc_parts::block_address const at = address_at(table, memory, role);
    bool const was_block =
        at.start != 0 && (halloc_parts::joined(release_type{table}.newest_word(at)) << 1 & at.start) == 0;
    table.add_count(was_block ? count::double_frees : count::foreign_frees, 1);
    return counted;
  }
  static constexpr u32 counted = ~0u;  ///< no role

  /// Gives back the block that is live at `memory` in a slab of that role. False if none is.
  WARPHEAP_DEVICE bool try_destroy(void* memory, u32 role) const {
    if (role == 0) return table_.large().try_destroy(memory);
    halloc_parts::block_address const at = address_at(table_, memory, role);
    return at.start != 0 && release_type{table_}.destroy(at);
  }
  /// Bytes of the block that is live at `memory` in a slab of that role; 0 if none is.
  WARPHEAP_DEVICE size_t size_at(void const* memory, u32 role) const {
    if (role == 0) return table_.large().usable_size(memory);
    halloc_parts::block_address const at = address_at(table_, memory, role);
    u64 const word = at.start != 0 ? release_type{table_}.newest_word(at) : 0;
    u32 const start = halloc_parts::live_starts(word, at.start, at.kind);
    return u64{popcount(halloc_parts::chunks_at(word, start))} * halloc_parts::chunk_bytes(at.kind);
  }
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::creation
