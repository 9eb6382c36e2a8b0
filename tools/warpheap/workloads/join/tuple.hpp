// SPDX-License-Identifier: Apache-2.0
// The tuples of a join's result, for the device and for the host that checks it: a key and two
// payloads.
//
// Its checksum is the sum, over its tuples, of a factor of the build tuple times a factor of the
// probe tuple. So it depends on no order, and the pairs of one key add up to the product of two
// sums. By that a host knows the expected checksum without making every pair. Factors are odd, so
// no factor makes a pair vanish from the sum.
#pragma once

#include "warpheap/util/random.hpp"

namespace warpheap::tool {

/// Bytes of a tuple of the result, and bytes of a page beside its tuples.
inline constexpr u64 join_tuple_bytes = 12, join_page_header_bytes = 8;

WARPHEAP_HOST_DEVICE constexpr u64 build_factor(u32 key, u32 payload) {
  return mix((u64{key} << 32 | payload) + 0x51ed'270b'9f2c'4d35u) | 1;
}
WARPHEAP_HOST_DEVICE constexpr u64 probe_factor(u32 key, u32 payload) {
  return mix((u64{payload} << 32 | key) ^ 0xc3a5'c85c'97cb'3127u) | 1;
}

}  // namespace warpheap::tool
