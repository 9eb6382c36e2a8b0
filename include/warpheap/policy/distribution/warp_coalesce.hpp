// SPDX-License-Identifier: Apache-2.0
// The small requests of a warp as one. A leader asks the creation policy for the sum of what the
// lanes that are together want, and each lane gets a sub-block. That is one request in place of
// thirty-two; the block goes back when its last sub-block is freed.
//
// Cost: 16 bytes a sub-block, a few ballots a call, one atomic a warp and block to free; and idle
// memory, because a freed sub-block serves no request until its neighbours are freed too. Any
// creation policy will do that aligns to 16 and has no smaller pages. Lanes that ask together need
// not free together.
// Sources: XMalloc (Huang et al. 2010) after Eckert 2014, section 4.3.3 ("XMallocSIMD");
// docs/design/warp_coalesce.md.
#pragma once

#include "../../sync/warp_aggregate.hpp"
#include "../config_text.hpp"
#include "../defaults.hpp"
#include "warp_coalesce/listing.hpp"
#include "warp_coalesce/sub_block.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace distribution {

/// Settings of warp_coalesce.
struct warp_coalesce_config {
  /// The size of the largest combined block; a multiple of 512, 1 KiB to 1 MiB. Only requests that
  /// fit in it 32 times with their headers are combined.
  size_t page_bytes{WARPHEAP_WARP_COALESCE_PAGE_BYTES};
};

#if !defined(__CUDACC_RTC__)
/// For info().
inline std::string describe(warp_coalesce_config const& config) { return config_text("page_bytes", config.page_bytes); }
#endif

/// One object serves one call: collect(), then distribute().
template <warp_coalesce_config Config = warp_coalesce_config{}>
class basic_warp_coalesce {
  static_assert(Config.page_bytes >= 1024 && Config.page_bytes <= size_t{1} << 20 && Config.page_bytes % 512 == 0,
                "warp_coalesce: page_bytes is a multiple of 512, 1 KiB to 1 MiB");

 public:
  static constexpr char const* name = "warp_coalesce";
  static constexpr warp_coalesce_config config = Config;
  static constexpr size_t page_bytes = Config.page_bytes;
  /// The alignment that created blocks must have, and that sub-blocks have then.
  static constexpr size_t alignment = sub_block_header::unit;
  /// The largest request that is combined.
  static constexpr size_t most_combined = page_bytes / sub_block_header::most - sub_block_header::unit;

  /// What is left of a creation policy's promises. A freed sub-block serves no request before its
  /// block is freed, so nullptr may come while there is room in sub-blocks. A second free is
  /// ignored, and not counted, as long as the memory was not handed out again.
  template <class Traits>
  WARPHEAP_HOST_DEVICE static constexpr Traits adjust(Traits promised) {
    Traits left = promised;
    left.alignment = alignment;
    left.self_aligned_up_to = 0;
    if constexpr (requires { left.multiples_aligned_up_to; }) left.multiples_aligned_up_to = 0;
    if constexpr (requires { left.padded_aligned_up_to; }) left.padded_aligned_up_to = 0;
    left.detects_misuse = left.exact_out_of_memory = left.whole_pool = false;
    if constexpr (requires { left.one_pass_refusals; }) left.one_pass_refusals = false;
    if constexpr (requires { left.largest_bytes; })
      if (left.largest_bytes != ~size_t{0}) left.largest_bytes -= sub_block_header::unit;
    return left;
  }

  /// Bytes that this lane asks the creation policy for: for all lanes that are here, for itself, or
  /// 0 if another lane asks for it.
  WARPHEAP_DEVICE size_t collect(size_t bytes) {
    return collect(bytes, [](lane_mask active) { return active; });
  }

  /// Collects where not all lanes may ask together: `same_heap(mask)` is those of `mask` that may
  /// ask with this one.
  template <class SameHeap>
  WARPHEAP_DEVICE size_t collect(size_t bytes, SameHeap same_heap) {
    bytes_ = bytes;
    if (bytes == 0 || bytes > most_combined) return framed_bytes(bytes);
    return combine(same_heap(simt::active_mask()));
  }

  /// Collects for all lanes of `mask`, which call together.
  template <class SameHeap>
  WARPHEAP_DEVICE size_t collect_warp(lane_mask mask, size_t bytes, SameHeap same_heap) {
    bytes_ = bytes;
    bool const is_small = bytes != 0 && bytes <= most_combined;
    lane_mask const together = simt::ballot(mask, is_small);
    return is_small ? combine(same_heap(together)) : framed_bytes(bytes);
  }

  /// This lane's sub-block of the created block, the leader's `memory`; nullptr if that is nullptr.
  WARPHEAP_DEVICE void* distribute(void* memory) {
    if (!combined()) return frame(memory, bytes_);
    lane_group const group = group_of(active_);
    u64 const units = units_of(bytes_);
    // coalesce.P2: before any lane of the group can free its sub-block.
    if (group.leads && memory)
      static_cast<sub_block_header*>(memory)->write(units, 0, group.size - 1, 0, low_mask32(group.size));
    u8* const block = static_cast<u8*>(simt::shuffle(active_, memory, group.leader));
    // The leader's acquire covers the other lanes' sub-blocks: what the old owners wrote happens
    // before what these lanes write.
    simt::sync_warp(active_);
    if (!block) return nullptr;
    auto* const header = reinterpret_cast<sub_block_header*>(block) + before_;
    if (!group.leads) header->write(units, group.rank, group.size - 1, before_, 0);  // coalesce.P3
    return header->sub_block();
  }

  /// Whether the request was for several lanes.
  WARPHEAP_DEVICE bool combined() const { return active_ != 0; }

  /// Bytes that a lane must ask for alone to get `bytes` bytes at a multiple of `wanted_alignment`;
  /// 0 stays 0.
  WARPHEAP_HOST_DEVICE static constexpr size_t framed_bytes(size_t bytes, size_t wanted_alignment = alignment) {
    size_t const lead = wanted_alignment < alignment ? alignment : wanted_alignment;
    if (bytes == 0) return 0;
    bool const possible = lead <= most_lead && bytes <= sub_block_header::most_units * sub_block_header::unit;
    return possible ? units_of(bytes) * sub_block_header::unit + lead : ~size_t{0} - sub_block_header::unit + 1;
  }

  /// The sub-block in a block `memory` of framed_bytes() at that alignment, which was created for
  /// this lane alone; nullptr if `memory` is nullptr.
  WARPHEAP_DEVICE static void* frame(void* memory, size_t bytes, size_t wanted_alignment = alignment) {
    if (!memory) return nullptr;
    auto* const first = static_cast<sub_block_header*>(memory);
    u32 const ahead =
        wanted_alignment <= alignment ? 0 : static_cast<u32>(wanted_alignment / sub_block_header::unit - 1);
    if (ahead != 0) first->write(ahead, 1, 0, 0, 0);  // points on to the header
    first[ahead].write(units_of(bytes), 0, 0, ahead, 1);
    return first[ahead].sub_block();
  }

  /// What the creation policy gets back now that the caller frees `memory`: the block, if this was
  /// its last sub-block, else nullptr. It is nullptr too if `memory` was freed already or starts no
  /// sub-block. Any lanes, converged or not.
  WARPHEAP_DEVICE static void* release(void* memory) {
    if (!memory) return nullptr;
    sub_block_header* const header = header_of(memory);
    if (!header->is_live_now()) return nullptr;
    header->mark_freed();
    if (header->last() == 0) return header->created();
    return release_together(header->created(), 1u << header->index());
  }

  /// Bytes that a caller may use at `memory`; 0 if no live sub-block starts there. The 16 bytes
  /// before `memory` must be readable.
  WARPHEAP_DEVICE static size_t usable_size(void const* memory) {
    sub_block_header* const header = header_of(memory);
    return header->is_live_now() ? header->bytes() : 0;
  }

  /// The block that the live sub-block at `memory` lies in.
  WARPHEAP_DEVICE static void* created(void const* memory) { return header_of(memory)->created(); }

#if !defined(__CUDACC_RTC__)
  /// Calls visit(address, bytes) for every live sub-block of blocks that start at `created`, in
  /// that order.
  template <class Visitor>
  static void for_each_live_sub_block(std::vector<u64> const& created, Visitor visit) {
    warpheap::for_each_live_sub_block(created, visit);
  }
#endif

 private:
  static constexpr size_t most_lead = size_t{1} << 35;  ///< an alignment that `back` can still span

  WARPHEAP_HOST_DEVICE static constexpr u64 units_of(size_t bytes) {
    return bytes / sub_block_header::unit + (bytes % sub_block_header::unit != 0);
  }

  /// The lanes of `active`, all of which call, ask for one block. Each learns how many units lie
  /// before its header: the sum of what the lanes below want, bit by bit.
  WARPHEAP_DEVICE size_t combine(lane_mask active) {
    active = in_our_32(active);
    if ((active & (active - 1)) == 0) return framed_bytes(bytes_);
    active_ = active;
    u32 const mine = static_cast<u32>(units_of(bytes_)) + 1;
    u32 all = 0;
    before_ = 0;
    for (u32 bit = 0; (page_bytes / sub_block_header::most / sub_block_header::unit) >> bit != 0; ++bit) {
      lane_mask const votes = simt::ballot(active, (mine >> bit) & 1);
      before_ += popcount(votes & simt::lanes_below()) << bit;
      all += popcount(votes) << bit;
    }
    return before_ == 0 ? all * sub_block_header::unit : 0;
  }

  /// Frees a sub-block for each lane here; sub-blocks in the same block by one operation.
  WARPHEAP_DEVICE static void* release_together(u8* created, u32 bit) {
    lane_group const group = group_by(simt::active_mask(), reinterpret_cast<u64>(created));
    u32 const freed = simt::reduce_or(group.mask, bit);
    // The leader's release covers the other lanes' last writes to their sub-blocks only because
    // they are ordered here.
    simt::sync_warp(group.mask);
    if (!group.leads) return nullptr;
    u32& live = reinterpret_cast<sub_block_header*>(created)->live;
    // coalesce.P2. release: what the owners of these sub-blocks wrote happens before the return of
    // the block. acquire: the thread that returns the block has received the writes to all
    // sub-blocks, which so happen before the next owner. Each pairs with the other.
    u32 const old = atomic_ref<u32>{live}.fetch_and(~freed, order::acq_rel);
    return (old & freed) != 0 && (old & ~freed) == 0 ? created : nullptr;
  }

  size_t bytes_ = 0;
  lane_mask active_ = 0;  ///< lanes that asked together; 0 if this one asked alone
  u32 before_ = 0;        ///< units from the block's start to this lane's header
};

/// With pages of 4 KiB.
using warp_coalesce = basic_warp_coalesce<>;

}}}  // namespace warpheap::WARPHEAP_BACKEND::distribution
