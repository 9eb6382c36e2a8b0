// SPDX-License-Identifier: Apache-2.0
// The header before each sub-block of a combined block: what `free` needs to know of a pointer,
// whichever policy created the block.
//
//  created block  | header 0 | sub-block 0 | header 1 | sub-block 1 | .. | header n | sub-block n |
//
//   63      46 45    41 40     36 35             0
//  |   check  |  last  |  index  |  bytes / 16    |    word
//  |       live        |       back / 16          |    the other two: 32 bits each
//
// coalesce.P1  Every pointer that is handed out has its header in the 16 bytes before it. As
//     long as the sub-block is live, the header's check fits.
// coalesce.P2  `live` of header 0 has a bit for every sub-block that was not freed. The thread that
//     clears the last one returns the block.
// coalesce.P3  A header is written before its sub-block is handed out, and changes once: its free
//     inverts the check.
// coalesce.P4  Header i + 1 starts where sub-block i ends, so the sub-blocks of a block can be
//     listed from its first byte.
//
// The check is a number computed from the sub-block's address. So a pointer that starts no
// sub-block, or one to a freed sub-block, is recognised, except one in 2^18 that happens to look
// right.
#pragma once

#include "../../../platform/simt.hpp"
#include "../../../util/bits.hpp"
#include "../../../util/random.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

struct alignas(16) sub_block_header {
  u64 word;
  u32 back;  ///< from the header to the created block's first byte, in units
  u32 live;  ///< of header 0 alone

  static constexpr size_t unit = 16;
  /// Sub-blocks of a created block.
  static constexpr u32 most = 32;
  /// The largest payload of a sub-block, in units; no device has as much.
  static constexpr u64 most_units = (u64{1} << 36) - 1;

  WARPHEAP_HOST_DEVICE u64 bytes() const { return (word & most_units) * unit; }
  WARPHEAP_HOST_DEVICE u32 index() const { return static_cast<u32>(word >> 36) & 31; }
  WARPHEAP_HOST_DEVICE u32 last() const { return static_cast<u32>(word >> 41) & 31; }
  WARPHEAP_HOST_DEVICE u32 header_check() const { return static_cast<u32>(word >> 46); }

  WARPHEAP_HOST_DEVICE static u32 check_for(sub_block_header const* at) {
    return mix32(static_cast<u32>(reinterpret_cast<u64>(at) / unit)) >> 14;
  }
  WARPHEAP_HOST_DEVICE bool is_live() const { return header_check() == check_for(this); }
  WARPHEAP_HOST_DEVICE bool was_live() const { return (header_check() ^ 0x3ffff) == check_for(this); }

  /// Whether it is live. The pointer may have come without any memory order, so a header whose
  /// check seems not to fit is read again by a read-modify-write, which reads the newest value.
  WARPHEAP_DEVICE bool is_live_now() {
    if (is_live()) return true;
    // acquire: what follows it in the header is read anew too.
    atomic_ref<u64>{word}.fetch_or(0, order::acquire);
    return is_live();
  }

  /// Whether this is at the first byte of a block whose one sub-block starts further on; `bytes` is
  /// then the distance to its header.
  WARPHEAP_HOST_DEVICE bool points_on() const { return index() == 1 && last() == 0; }

  WARPHEAP_DEVICE void write(u64 units, u32 index, u32 last, u32 back_units, u32 live_bits) {
    word = u64{check_for(this)} << 46 | u64{last} << 41 | u64{index} << 36 | units;
    back = back_units;
    live = live_bits;
  }
  /// Marks the sub-block as freed. It has the same effect whichever thread does it, and however
  /// often.
  WARPHEAP_DEVICE void mark_freed() { word = u64{check_for(this) ^ 0x3ffff} << 46 | (word & low_mask(46)); }

  WARPHEAP_HOST_DEVICE u8* sub_block() const { return reinterpret_cast<u8*>(const_cast<sub_block_header*>(this + 1)); }
  WARPHEAP_DEVICE u8* created() const { return sub_block() - unit - u64{back} * unit; }
};
static_assert(sizeof(sub_block_header) == sub_block_header::unit);

/// The header of the sub-block that starts at `memory`.
WARPHEAP_HOST_DEVICE inline sub_block_header* header_of(void const* memory) {
  return static_cast<sub_block_header*>(const_cast<void*>(memory)) - 1;
}

}}  // namespace warpheap::WARPHEAP_BACKEND
