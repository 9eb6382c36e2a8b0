// SPDX-License-Identifier: Apache-2.0
// A scatter heap of a few pages, and its state when nothing is live.
#pragma once

#include "policy/creation/quiet_pool_fixture.hpp"

namespace warpheap::test {

/// Emptied pages keep their size.
inline constexpr creation::scatter_config keeping_sizes{.reset_freed_pages = false};

/// Owns the memory of a pool of `pages` pages.
template <class Allocator>
class scatter_pool : public quiet_pool<Allocator> {
 public:
  static constexpr u64 page_bytes = Allocator::config.page_bytes;

  explicit scatter_pool(u32 pages) : quiet_pool<Allocator>{pages * page_bytes}, pages_{pages} {}

  u32 pages() const { return pages_; }
  u64 first_address() const { return reinterpret_cast<u64>(this->allocator().table().pool()); }
  u64 page_of(void const* memory) const { return (reinterpret_cast<u64>(memory) - first_address()) / page_bytes; }

  /// Nothing is live, and where emptied pages are reset every page is free: no run is too long, and
  /// every slot is there.
  void expect_empty() const {
    this->expect_quiet(0);
    if (!Allocator::config.reset_freed_pages) return;
    auto const& heap = this->allocator();
    EXPECT_EQ(heap.snapshot().statistics().free_slabs, pages_);
    EXPECT_EQ(count_slots_by_grid(heap, page_bytes), pages_);
    EXPECT_EQ(count_slots_by_grid(heap, pages_ * page_bytes), 1u);
  }

 private:
  u32 pages_;
};

}  // namespace warpheap::test
