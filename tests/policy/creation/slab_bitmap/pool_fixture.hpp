// SPDX-License-Identifier: Apache-2.0
// A slab_bitmap over a handful of slabs.
#pragma once

#include "policy/creation/quiet_pool_fixture.hpp"

namespace warpheap::test {

using namespace slab_bitmap_parts;

using slab_allocator = creation::slab_bitmap<>;

/// Owns the memory of a pool of `slabs` slabs of 16 KiB.
class tiny_pool : public quiet_pool<slab_allocator> {
 public:
  static constexpr size_t slab_bytes = 16384;

  explicit tiny_pool(u32 slabs) : quiet_pool{slabs * slab_bytes}, slabs_{slabs} {}

  /// Nothing is live, and every slab is there for any request.
  void expect_empty() const {
    expect_quiet(0);
    EXPECT_EQ(count_slots_by_grid(allocator(), slab_bytes), slabs_);
  }

 private:
  u32 slabs_;
};

}  // namespace warpheap::test
