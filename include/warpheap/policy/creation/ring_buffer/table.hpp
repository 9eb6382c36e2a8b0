// SPDX-License-Identifier: Apache-2.0
// The frames of a ring_buffer: where they and their words lie, and which of them are owned.
//
//   pool       frame 0 | frame 1 | ...   starts at a multiple of 4 KiB (unit_pool.hpp)
//   metadata   counts
//              ring                      the queue of free frames
//              owned                     a bit a frame
//
//   ring_buffer.F1  the thread that popped a frame sets its bit before it hands the frame out, and
//       the thread that is to push it clears the bit. So a frame is pushed at most once for each
//       time it was popped, whatever callers free.
//   ring_buffer.F2  at rest a frame is either owned or in the ring.
#pragma once

#include "../../../structure/ring_queue.hpp"
#include "../shared/unit_pool.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace ring_buffer_parts {

using creation::count;

/// Kernel: writes the ring of a heap whose frames are all free.
struct fill_ring {
  WARPHEAP_DEVICE void operator()(ring_queue ring, u32 start) const {
    ring.fill(start, global_thread_index(), u64{simt::block_dim()} * simt::grid_dim());
  }
};

/// View of a heap of frames; 16 bytes, trivially copyable, owns nothing.
template <size_t FrameBytes>
class table : public creation::unit_pool<FrameBytes> {
  using base_type = creation::unit_pool<FrameBytes>;

 public:
  using base_type::base_type, base_type::metadata;

  WARPHEAP_HOST_DEVICE u32 frames() const { return this->units(); }
  WARPHEAP_HOST_DEVICE u64 metadata_bytes() const { return owned_offset(frames()) + 4 * owned_words(); }
  WARPHEAP_HOST_DEVICE ring_queue ring() const { return {reinterpret_cast<u32*>(metadata() + count_bytes), frames()}; }

  /// Makes a popped frame owned (ring_buffer.F1). Returns its address once its bit is set.
  WARPHEAP_DEVICE void* own(u32 frame) const {
    // relaxed: the ring ordered us after the thread that cleared the bit.
    u32 const before = owned(frame).fetch_or(bit_of(frame), order::relaxed);
    // The bit is never set already (ring_buffer.F1). The test makes the address depend on the
    // atomic: a GPU does not wait for an atomic whose result it does not need, and another thread
    // might get the address through a relaxed word before the bit is set.
    return (before & bit_of(frame)) == 0 ? this->address(frame) : nullptr;
  }

  /// Ends a frame's ownership; false if it had no owner. A thread that gets true pushes it
  /// (ring_buffer.F1).
  WARPHEAP_DEVICE bool disown(u32 frame) const {
    // relaxed: only one read-modify-write sees the bit set, and the ring orders the frame's
    // contents.
    return owned(frame).fetch_and(~bit_of(frame), order::relaxed) & bit_of(frame);
  }

  /// Whether a frame is owned. The caller may have the address without any memory order, so a frame
  /// that a load finds free is checked by a read-modify-write, which reads the newest value.
  WARPHEAP_DEVICE bool is_owned(u32 frame) const {
    if (owned(frame).load(order::relaxed) & bit_of(frame)) return true;
    return owned(frame).fetch_or(0, order::relaxed) & bit_of(frame);
  }

  // Offsets in the metadata.
  static constexpr u64 count_bytes = 128;
  WARPHEAP_HOST_DEVICE static constexpr u64 owned_offset(u32 frames) {
    return count_bytes + 4 * ring_queue::words_for(frames);
  }
  WARPHEAP_HOST_DEVICE u64 owned_words() const { return (u64{frames()} + 31) / 32; }

  /// Makes every frame free, in order on stream `on`.
  WARPHEAP_HOST void initialize(stream_view on) const {
    backend::fill_bytes(metadata(), 0, count_bytes, on);
    backend::fill_bytes(metadata() + owned_offset(frames()), 0, 4 * owned_words(), on);
    launch(on, {frames() < 4096 ? 1u : 256u, 256}, fill_ring{}, ring(), 0u);
  }

 private:
  WARPHEAP_DEVICE atomic_ref<u32> owned(u32 frame) const {
    return atomic_ref<u32>{reinterpret_cast<u32*>(metadata() + owned_offset(frames()))[frame / 32]};
  }
  WARPHEAP_HOST_DEVICE static u32 bit_of(u32 frame) { return 1u << frame % 32; }
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::ring_buffer_parts
