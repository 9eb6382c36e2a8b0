// SPDX-License-Identifier: Apache-2.0
// The name of a block that is valid in every process of a job: its process, and its offset in that
// process's pool. nvshmem/symmetric_heap.hpp makes and takes it.
#pragma once

#include "../platform/types.hpp"
#include "../util/bits.hpp"

namespace warpheap {

/// A block of one PE. 8 bytes, so that one store, exchange or compare-and-swap can pass it on.
///
///    63    48 47        0
///   |  pe + 1 |  offset  |     0: no block
class remote_ptr {
 public:
  /// Bits of an offset.
  static constexpr u32 offset_bits = 48;
  /// How many PEs there may be.
  static constexpr u32 most_pes = (u32{1} << 16) - 1;
  /// How many bytes a pool may have.
  static constexpr u64 most_bytes = u64{1} << offset_bits;

  /// The null name.
  remote_ptr() = default;
  /// `pe` below most_pes, `offset` in bytes from the start of its pool, below most_bytes.
  WARPHEAP_HOST_DEVICE constexpr remote_ptr(u32 pe, u64 offset) : bits_{u64{pe + 1} << offset_bits | offset} {}
  /// From what bits() returned.
  WARPHEAP_HOST_DEVICE static constexpr remote_ptr from_bits(u64 bits) {
    remote_ptr made;
    made.bits_ = bits;
    return made;
  }

  /// The block's PE; not for the null name.
  WARPHEAP_HOST_DEVICE constexpr u32 pe() const { return static_cast<u32>(bits_ >> offset_bits) - 1; }
  /// Bytes from the start of its pool.
  WARPHEAP_HOST_DEVICE constexpr u64 offset() const { return bits_ & low_mask(offset_bits); }

  /// The whole name as a number; 0 for the null name.
  WARPHEAP_HOST_DEVICE constexpr u64 bits() const { return bits_; }
  /// Whether it names a block.
  WARPHEAP_HOST_DEVICE constexpr explicit operator bool() const { return bits_ != 0; }
  WARPHEAP_HOST_DEVICE friend constexpr bool operator==(remote_ptr one, remote_ptr other) {
    return one.bits_ == other.bits_;
  }

  /// The address `bytes` further on in the same block.
  WARPHEAP_HOST_DEVICE constexpr remote_ptr operator+(u64 bytes) const { return from_bits(bits_ + bytes); }

 private:
  u64 bits_ = 0;
};
static_assert(sizeof(remote_ptr) == 8);

}  // namespace warpheap
