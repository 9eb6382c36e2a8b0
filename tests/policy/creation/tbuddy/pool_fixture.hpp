// SPDX-License-Identifier: Apache-2.0
// A tbuddy heap of a few small pages, and how it looks when it is as new.
#pragma once

#include "policy/creation/quiet_pool_fixture.hpp"

namespace warpheap::test {

constexpr creation::tbuddy_config pages_of_64{.page_bytes = 64};
using small_tbuddy = creation::tbuddy<pages_of_64>;

/// Owns the memory of a pool of `pages` pages.
class tbuddy_pool : public quiet_pool<small_tbuddy> {
 public:
  static constexpr u64 page_bytes = 64;

  explicit tbuddy_pool(u32 pages) : quiet_pool{pages * page_bytes}, pages_{pages} {}

  u32 pages() const { return pages_; }
  u64 page_of(void const* memory) const { return allocator().table().page_of(memory); }

  /// Nothing is live, and all that is free is in the largest blocks that there are.
  bool is_as_new(u64 ignored = 0) const {
    bool largest = is_quiet(0, ignored);
    for (u32 order = 0; order < 31; ++order)
      largest = largest && count_slots_by_grid(allocator(), page_bytes << order) == pages_ >> order;
    return largest;
  }

 private:
  u32 pages_;
};

}  // namespace warpheap::test
