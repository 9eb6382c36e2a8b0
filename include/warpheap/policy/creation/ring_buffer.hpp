// SPDX-License-Identifier: Apache-2.0
// The HeapBuffer of PIConGPU: a pool of frames of one size, whose numbers lie in a ring with a push
// and a pop index. A request takes the next free frame whatever its size, up to the frame's; a
// larger one is refused. Nothing is searched and nothing fragments, so a call costs the same
// whether the pool is empty or all but full.
//
// Cost: a load and four dependent atomics for a warp that allocates, a bit a frame that says
// whether it is owned, and 4 to 8 bytes a frame for the ring. All warps use the same three words,
// each of which takes about 1.3 billion operations a second on an H200.
//
// Source: Eckert 2014, section 2.4.4. There, only the next worker that asked noticed a full buffer;
// here every worker does, and a frame freed twice is noticed too: docs/design/ring_buffer.md.
#pragma once

#include "../../structure/ring_queue.hpp"
#include "../memory_range.hpp"
#include "report.hpp"
#include "ring_buffer/config.hpp"
#include "ring_buffer/snapshot.hpp"
#include "ring_buffer/table.hpp"
#include "shared/policy_base.hpp"
#include "shared/pool_units.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace creation {

/// A handle on a heap of frames: 16 bytes, trivially copyable; all copies serve the same heap.
template <ring_buffer_config Config = ring_buffer_config{}>
class ring_buffer : public policy_base<ring_buffer<Config>, ring_buffer_parts::table<Config.frame_bytes>> {
  static constexpr size_t frame_bytes = Config.frame_bytes;
  static_assert(is_valid(Config), "ring_buffer: frame_bytes is a multiple of 16");
  using table_type = ring_buffer_parts::table<frame_bytes>;
  using base_type = policy_base<ring_buffer, table_type>;
  using base_type::table_, base_type::refuse;

 public:
  static constexpr char const* name = "ring_buffer";
  static constexpr ring_buffer_config config = Config;
  /// The most that a distribution policy may combine requests into: a frame.
  static constexpr size_t page_bytes = Config.frame_bytes;
  static constexpr allocator_traits traits{.alignment = 16,
                                           .self_aligned_up_to = table_type::unit_alignment,
                                           .multiples_aligned_up_to = table_type::unit_alignment,
                                           .detects_misuse = true,
                                           .exact_out_of_memory = true,
                                           .largest_bytes = frame_bytes};

  /// A frame; nullptr for 0 bytes, for more than a frame has, and when every frame is owned. Any
  /// lanes, converged or not.
  WARPHEAP_DEVICE void* create(size_t bytes) const {
    if (bytes == 0) return nullptr;
    if (bytes > frame_bytes) return refuse();
    return serve(group_by(simt::active_mask(), this->key_of()));
  }

  /// A frame at a multiple of `alignment`, a power of two; refused if frames are not aligned to it.
  WARPHEAP_DEVICE void* create_aligned(size_t alignment, size_t bytes) const {
    return alignment <= table_type::unit_alignment || bytes == 0 ? create(bytes) : refuse();
  }

  /// A frame for each lane of `mask`, each with its own size. All of them call, with the same mask.
  WARPHEAP_DEVICE void* create_warp(lane_mask mask, size_t bytes) const {
    bool const fits = bytes != 0 && bytes <= frame_bytes;
    lane_mask const together = simt::ballot(mask, fits);
    return fits ? serve(group_by(together, this->key_of())) : create(bytes);
  }

  /// Gives a frame back. Any lanes, converged or not. nullptr does nothing; any other pointer to no
  /// owned frame is counted and ignored.
  WARPHEAP_DEVICE void destroy(void* memory) const {
    if (!memory) return;
    u32 const frame = table_.number_of(memory);
    if (frame == table_.none) return table_.add_count(count::foreign_frees);
    if (!table_.disown(frame)) return table_.add_count(count::double_frees);
    table_.ring().push(group_by(simt::active_mask(), this->key_of()), frame);
  }

  /// frame_bytes if `memory` is an owned frame, else 0.
  WARPHEAP_DEVICE size_t usable_size(void const* memory) const { return owns(memory) ? frame_bytes : 0; }

  /// Whether `memory` is an owned frame.
  WARPHEAP_DEVICE bool owns(void const* memory) const {
    u32 const frame = table_.number_of(memory);
    return frame != table_.none && table_.is_owned(frame);
  }

  /// Frames that could be allocated now; exact when the heap is quiet. One load.
  WARPHEAP_DEVICE u64 available_slots(size_t bytes) const {
    return bytes != 0 && bytes <= frame_bytes ? table_.ring().available() : 0;
  }

  /// For slot_survey.hpp, which counts in parts.
  WARPHEAP_HOST_DEVICE u64 slot_places() const { return 1; }
  WARPHEAP_DEVICE slot_part count_slots(size_t bytes, slot_share share) const {
    return {.count = share.part == 0 ? available_slots(bytes) : 0};
  }

  /// Frames of a pool. Throws std::invalid_argument for less than a frame, and for more than the
  /// ring takes.
  WARPHEAP_HOST static u32 plan(size_t pool_bytes) {
    return static_cast<u32>(count_units("ring_buffer", "frames", pool_bytes, frame_bytes, ring_queue::max_items));
  }
  /// The pool, of which the policy reads and writes no byte.
  WARPHEAP_HOST memory_range untouched_pool() const { return {table_.pool(), table_.pool_bytes()}; }

#if !defined(__CUDACC_RTC__)
  /// A copy of the heap's state, which answers the host's questions: report.hpp.
  ring_buffer_parts::snapshot<frame_bytes> snapshot() const { return ring_buffer_parts::snapshot<frame_bytes>{table_}; }
#endif

 private:
  /// A frame for each lane of the group, as long as there are any. All lanes of the group call.
  WARPHEAP_DEVICE void* serve(lane_group const& group) const {
    u32 const frame = table_.ring().pop(group);
    return frame != ring_queue::none ? table_.own(frame) : refuse();
  }
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::creation
