// SPDX-License-Identifier: Apache-2.0
// A heap whose blocks other GPUs may free: a refused call makes the frees in the heap's mailbox,
// and tries once more. nullptr then means that no suitable block stayed free during that try,
// before which all frees posted before the call had been made.
//
// Cost: 0.8% of the pool, for units of 16 bytes; for a refused call some loads, and a second try
// once the mailbox has been used. Source: ours. structure/mailbox.hpp, docs/design/heap_set.md.
#pragma once

#include "../../structure/mailbox_drain.hpp"
#include "../memory_range.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace oom {

/// Copies serve one heap. `Unit` is the alignment of all blocks, in bytes.
template <u32 Unit = 16>
class drain_mailbox {
 public:
  static constexpr char const* name = "drain_mailbox";
  static constexpr bool asks_host = false;
  using mailbox_type = mailbox<Unit>;

  struct request {
    bool is_over = false;
  };

  /// For `bytes` bytes that were refused.
  WARPHEAP_DEVICE request begin(u64 bytes) const { return {bytes > box_->pool_bytes()}; }

  /// Drains the mailbox, once per request, together with the converged lanes. Returns whether any
  /// block may have become free. `pool.give_back(memory)` frees. Any lanes.
  template <class Pool>
  WARPHEAP_DEVICE bool more_may_be_there(request& mine, u64, Pool pool) const {
    if (mine.is_over) return false;
    mine.is_over = true;
    lane_mask const active = simt::match_any(simt::active_mask(), reinterpret_cast<u64>(box_));
    return drain(active, [=](void* memory) { pool.give_back(memory); });
  }

  /// Calls `free(memory)` for everything posted before; returns false if nothing was ever posted.
  /// All lanes of `active` call together.
  template <class Free>
  WARPHEAP_DEVICE bool drain(lane_mask active, Free free) const {
    return mailbox_drain<mailbox_type>{box_, active}(free);
  }

#if !defined(__CUDACC_RTC__)
  /// Bytes of state for blocks in `pool_bytes` bytes.
  static size_t state_bytes_for(size_t pool_bytes) {
    return view_bytes + align_up(mailbox_type::bytes_for(pool_bytes), 128);
  }

  /// The policy of a heap whose blocks lie in `pool`, with state_bytes_for(pool.bytes) bytes or
  /// more at `state`, aligned to 128.
  static drain_mailbox place(void* state, memory_range pool) {
    drain_mailbox made;
    made.box_ = static_cast<mailbox_type*>(state);
    mailbox_type const view = mailbox_type::place(static_cast<u8*>(state) + view_bytes, pool.begin, pool.bytes);
    backend::copy_bytes(state, &view, sizeof view);
    return made;
  }

  /// Discards all posts, in order on stream `on`. `pool_bytes` as passed to state_bytes_for().
  void initialize(size_t pool_bytes, stream_view on) const {
    u8* const state = reinterpret_cast<u8*>(box_);
    backend::fill_bytes(state + view_bytes, 0, state_bytes_for(pool_bytes) - view_bytes, on);
  }

  /// A copy of the mailbox's view, for other GPUs.
  mailbox_type view() const {
    mailbox_type copied;
    backend::copy_bytes(&copied, box_, sizeof copied);
    return copied;
  }
#endif

 private:
  static constexpr size_t view_bytes = 128;
  static_assert(sizeof(mailbox_type) <= view_bytes);

  mailbox_type* box_ = nullptr;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::oom
