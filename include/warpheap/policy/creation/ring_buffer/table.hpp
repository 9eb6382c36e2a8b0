// SPDX-License-Identifier: Apache-2.0
// The frames of a ring_buffer: where they and their words lie, and which of them are owned.
//
//   base - frames * frame_bytes   frame 0 | frame 1 | ...     the pool, its start aligned to 4 KiB
//   base                          counts                      128 bytes: double frees, frees of no
//                                                             frame, refusals
//                                 ring                        the queue of free frames
//                                 owned                       a bit a frame
//
//   ring_buffer.F1  the thread that popped a frame sets its bit before it hands the frame out, and
//       the thread that is to push it clears the bit. So a frame is pushed at most once for each
//       time it was popped, whatever callers free.
//   ring_buffer.F2  at rest a frame is either owned or in the ring.
#pragma once

#include "../../../structure/ring_queue.hpp"
#include "../report.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace ring_buffer_parts {

/// Counts that no invariant rests on.
enum class count : u32 { double_frees, foreign_frees, failures };

/// The first frame's address is a multiple of this.
inline constexpr size_t pool_alignment = 4096;

/// View of a heap of frames; 16 bytes, trivially copyable, owns nothing.
template <size_t FrameBytes>
class table {
 public:
  static constexpr u32 none = ring_queue::none;
  /// Alignment of every frame: the largest power of two that divides FrameBytes, up to 4 KiB.
  static constexpr size_t alignment =
      (FrameBytes & (0 - FrameBytes)) < pool_alignment ? FrameBytes & (0 - FrameBytes) : pool_alignment;

  table() = default;
  /// `base` is where the pool ends and the metadata begins.
  WARPHEAP_HOST_DEVICE table(u8* base, u32 frames) : base_{base}, frames_{frames} {}

  WARPHEAP_HOST_DEVICE u32 frames() const { return frames_; }
  WARPHEAP_HOST_DEVICE u64 pool_bytes() const { return u64{frames_} * FrameBytes; }
  WARPHEAP_HOST_DEVICE u8* pool() const { return base_ - padded_pool_bytes(frames_); }
  WARPHEAP_HOST_DEVICE void* address(u32 frame) const { return pool() + u64{frame} * FrameBytes; }
  WARPHEAP_HOST_DEVICE u8* metadata() const { return base_; }
  WARPHEAP_HOST_DEVICE u64 metadata_bytes() const { return owned_offset(frames_) + 4 * owned_words(); }
  WARPHEAP_HOST_DEVICE ring_queue ring() const { return {reinterpret_cast<u32*>(base_ + count_bytes), frames_}; }

  /// The number of the frame that starts at `memory`; none if no frame does.
  WARPHEAP_HOST_DEVICE u32 number_of(void const* memory) const {
    u64 const offset = reinterpret_cast<u64>(memory) - reinterpret_cast<u64>(pool());
    bool const starts_one = offset < pool_bytes() && offset % FrameBytes == 0;
    return starts_one ? static_cast<u32>(offset / FrameBytes) : none;
  }

  /// Makes a popped frame owned (ring_buffer.F1). Returns its address once its bit is set.
  WARPHEAP_DEVICE void* own(u32 frame) const {
    // relaxed: the ring ordered us after the thread that cleared the bit.
    u32 const before = owned(frame).fetch_or(bit_of(frame), order::relaxed);
    // The bit is never set already (ring_buffer.F1). The test makes the address depend on the
    // atomic: a GPU does not wait for an atomic whose result it does not need, and another thread
    // might get the address through a relaxed word before the bit is set.
    return (before & bit_of(frame)) == 0 ? address(frame) : nullptr;
  }

  /// Ends a frame's ownership; false if nobody owned it. A thread that gets true pushes it
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

  WARPHEAP_DEVICE void add_count(count which) const {
    atomic_ref<u64>{reinterpret_cast<u64*>(base_)[static_cast<u32>(which)]}.fetch_add(1, order::relaxed);
  }

  // Offsets in the metadata.
  static constexpr u64 count_bytes = 128;
  WARPHEAP_HOST_DEVICE static constexpr u64 owned_offset(u32 frames) {
    return count_bytes + 4 * ring_queue::words_for(frames);
  }
  WARPHEAP_HOST_DEVICE u64 owned_words() const { return (u64{frames_} + 31) / 32; }

  /// Memory for `frames` frames with their metadata, wherever it starts.
  WARPHEAP_HOST static u64 reserved_bytes(u32 frames) {
    return padded_pool_bytes(frames) + table{nullptr, frames}.metadata_bytes() + pool_alignment;
  }

  WARPHEAP_HOST static table place(void* memory, u32 frames) {
    u64 const start = align_up(reinterpret_cast<u64>(memory), pool_alignment);
    return {reinterpret_cast<u8*>(start) + padded_pool_bytes(frames), frames};
  }

  /// Makes every frame free, in order on stream `on`.
  WARPHEAP_HOST void initialize(stream_view on) const;

 private:
  /// So that the metadata starts at a multiple of 128.
  WARPHEAP_HOST_DEVICE static constexpr u64 padded_pool_bytes(u32 frames) {
    return align_up(u64{frames} * FrameBytes, 128);
  }
  WARPHEAP_DEVICE atomic_ref<u32> owned(u32 frame) const {
    return atomic_ref<u32>{reinterpret_cast<u32*>(base_ + owned_offset(frames_))[frame / 32]};
  }
  WARPHEAP_HOST_DEVICE static u32 bit_of(u32 frame) { return 1u << frame % 32; }

  u8* base_ = nullptr;
  u32 frames_ = 0;
};

/// Kernel: writes the ring of a heap whose frames are all free.
struct fill_ring {
  WARPHEAP_DEVICE void operator()(ring_queue ring, u32 start) const {
    ring.fill(start, global_thread_index(), u64{simt::block_dim()} * simt::grid_dim());
  }
};

template <size_t FrameBytes>
WARPHEAP_HOST void table<FrameBytes>::initialize(stream_view on) const {
  u64 const ring_bytes = 4 * ring_queue::words_for(frames_);
  backend::fill_bytes(metadata(), 0, count_bytes, on);
  backend::fill_bytes(metadata() + count_bytes + ring_bytes, 0, 4 * owned_words(), on);
  launch(on, {frames_ < 4096 ? 1u : 256u, 256}, fill_ring{}, ring(), 0u);
}

}}}  // namespace warpheap::WARPHEAP_BACKEND::ring_buffer_parts
