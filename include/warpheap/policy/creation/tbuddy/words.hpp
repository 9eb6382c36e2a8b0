// SPDX-License-Identifier: Apache-2.0
// What a tbuddy heap remembers of a live block, beside its tree: the order bytes.
//
//    31         24 23        16 15          8 7          0
//   |  allocator  |   caller   |  allocator  |   caller   |
//   |       of page 2i + 1     |        of page 2i        |
//
//   tbuddy.P1  a page has two order bytes: the first for a block of a caller, the second for one
//       that an allocator above keeps. A byte is 1 + the order of the live block that starts there,
//       and 0 if none does. The thread that took the block writes its owner's byte before it hands
//       the block out. Of the threads that free the block, the one that clears the byte gives the
//       block back. A caller's free clears callers' bytes alone, so an old pointer never ends a
//       block that an allocator keeps. A block's address alone does not tell its order: the first
//       halves of a block start where it does.
//   tbuddy.P3  a pool that grows lacks memory beyond its first units of unit_bytes each. An
//       uncommitted unit is a block that no caller frees: it is no available node, nor part of one,
//       and the second byte of its first page says `uncommitted`. Of the threads that add the unit,
//       the one that clears the byte gives the block back.
#pragma once

#include "../../../platform/types.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace tbuddy_parts {

/// Whose a block is, which selects one of a page's two order bytes.
enum class block_owner : u32 { caller, allocator };

/// What pools that grow do so by, and what is committed or uncommitted as a whole.
inline constexpr u64 unit_bytes = u64{1} << 21;
/// The order byte of an uncommitted unit (tbuddy.P3); no order is as large.
inline constexpr u32 uncommitted = 0xff;

WARPHEAP_HOST_DEVICE constexpr u32 order_shift(u32 page, block_owner owner) {
  return 16 * (page % 2) + 8 * static_cast<u32>(owner);
}
WARPHEAP_HOST_DEVICE constexpr u32 order_byte(u32 word, u32 page, block_owner owner) {
  return word >> order_shift(page, owner) & 0xff;
}

}}}  // namespace warpheap::WARPHEAP_BACKEND::tbuddy_parts
