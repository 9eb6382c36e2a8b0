// SPDX-License-Identifier: Apache-2.0
// Which lanes hold the same object: copies of one handle serve one heap, and lanes that act as one
// must hold the same.
#pragma once

#include "../platform/simt.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// The lanes of `mask` whose `object` has the same bytes as the calling lane's. All lanes of `mask`
/// call. Copies that differ in padding count as different.
template <class T>
WARPHEAP_DEVICE lane_mask lanes_with_same(lane_mask mask, T const& object) {
  static_assert(__is_trivially_copyable(T));
  constexpr size_t words = (sizeof(T) + sizeof(u64) - 1) / sizeof(u64);
  u64 image[words] = {};
#if defined(__CUDACC_RTC__)
  memcpy(image, &object, sizeof(T));  // NVRTC declares it, and has no built-in of the name
#else
  __builtin_memcpy(image, &object, sizeof(T));
#endif
  for (u64 const word : image) mask = simt::match_any(mask, word);
  return mask;
}

}}  // namespace warpheap::WARPHEAP_BACKEND
