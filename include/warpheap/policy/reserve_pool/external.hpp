// SPDX-License-Identifier: Apache-2.0
// A pool in memory that the caller owns, starting anywhere: a part of a larger allocation, a
// symmetric heap, a mapping.
#pragma once

#if !defined(__CUDACC_RTC__)

#include "../../platform/simt.hpp"
#include "../memory_range.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace reserve_pool {

/// Existing memory, which stays when the heap is destroyed, and must outlive it.
class external {
 public:
  static constexpr char const* name = "external";

  external(void* memory, size_t bytes) : range_{memory, bytes} {}

  /// The whole range; the heap uses as much as fits its needs.
  memory_range range() const { return range_; }

 private:
  memory_range range_;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::reserve_pool

#endif
