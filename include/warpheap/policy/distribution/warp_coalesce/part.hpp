// SPDX-License-Identifier: Apache-2.0
// The header before each part of a combined block: what `free` needs to know of a pointer,
// whichever policy created the block.
//
//  created block  | header 0 | part 0 .. | header 1 | part 1 .. | .. | header last | part last .. |
//
//   63      46 45    41 40     36 35             0
//  |   seal   |  last  |  index  |  bytes / 16    |    word
//  |       live        |       back / 16          |    the other two: 32 bits each
//
// coalesce.P1  Every pointer that is handed out has its header in the 16 bytes before it, sealed as
//     long as it is live.
// coalesce.P2  `live` of header 0 has a bit for every part that was not freed. The thread that
//     clears the last one returns the block.
// coalesce.P3  A header is written before its part is handed out, and changes once: its free breaks
//     the seal.
// coalesce.P4  Header i + 1 starts where part i ends, so the parts of a block can be listed from
//     its first byte.
//
// The seal is a number computed from the part's address. So a pointer that starts no part, or one
// to a freed part, is recognised, except one in 2^18 that happens to look right.
#pragma once

#include "../../../platform/simt.hpp"
#include "../../../util/bits.hpp"
#include "../../../util/random.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

struct alignas(16) part_header {
  u64 word;
  u32 back;  ///< from the header to the created block's first byte, in units
  u32 live;  ///< of header 0 alone

  static constexpr size_t unit = 16;
  /// The largest payload of a part, in units; no device has as much.
  static constexpr u64 most_units = (u64{1} << 36) - 1;

  WARPHEAP_HOST_DEVICE u64 bytes() const { return (word & most_units) * unit; }
  WARPHEAP_HOST_DEVICE u32 index() const { return static_cast<u32>(word >> 36) & 31; }
  WARPHEAP_HOST_DEVICE u32 last() const { return static_cast<u32>(word >> 41) & 31; }
  WARPHEAP_HOST_DEVICE u32 seal() const { return static_cast<u32>(word >> 46); }

  WARPHEAP_HOST_DEVICE static u32 seal_for(part_header const* at) {
    return mix32(static_cast<u32>(reinterpret_cast<u64>(at) / unit)) >> 14;
  }
  WARPHEAP_HOST_DEVICE bool is_sealed() const { return seal() == seal_for(this); }
  WARPHEAP_HOST_DEVICE bool was_sealed() const { return (seal() ^ 0x3ffff) == seal_for(this); }

  /// Whether it is sealed. The pointer may have come without any memory order, so a header that
  /// seems to have no seal is read again by a read-modify-write, which reads the newest value.
  WARPHEAP_DEVICE bool is_sealed_now() {
    if (is_sealed()) return true;
    // acquire: what follows it in the header is read anew too.
    atomic_ref<u64>{word}.fetch_or(0, order::acquire);
    return is_sealed();
  }

  /// Whether this is at the first byte of a block whose one part starts further on; `bytes` is then
  /// the distance to its header.
  WARPHEAP_HOST_DEVICE bool points_on() const { return index() == 1 && last() == 0; }

  WARPHEAP_DEVICE void write(u64 units, u32 index, u32 last, u32 back_units, u32 live_bits) {
    word = u64{seal_for(this)} << 46 | u64{last} << 41 | u64{index} << 36 | units;
    back = back_units;
    live = live_bits;
  }
  /// Marks the part as freed. It has the same effect whichever thread does it, and however often.
  WARPHEAP_DEVICE void break_seal() { word = u64{seal_for(this) ^ 0x3ffff} << 46 | (word & low_mask(46)); }

  WARPHEAP_HOST_DEVICE u8* part() const { return reinterpret_cast<u8*>(const_cast<part_header*>(this + 1)); }
  WARPHEAP_DEVICE u8* created() const { return part() - unit - u64{back} * unit; }
};
static_assert(sizeof(part_header) == part_header::unit);

/// The header of the part that starts at `memory`.
WARPHEAP_HOST_DEVICE inline part_header* header_of(void const* memory) {
  return static_cast<part_header*>(const_cast<void*>(memory)) - 1;
}

}}  // namespace warpheap::WARPHEAP_BACKEND
