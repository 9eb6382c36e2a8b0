// SPDX-License-Identifier: Apache-2.0
// A heap over a pool of which the first units have memory, and the others do not.
#pragma once

#include <algorithm>
#include <set>

#include "quiet_pool_fixture.hpp"

namespace warpheap::test {

/// The units that the tests commit and decommit: 2 MiB of TBuddy, and what is made of it; a slab of
/// a slab_bitmap that is small.
template <class Policy>
inline constexpr u64 unit_of_growth = tbuddy_parts::unit_bytes;
template <>
inline constexpr u64 unit_of_growth<creation::slab_bitmap<>> = 16384;

/// A pool of which the first units are committed.
template <class Policy>
class partial_pool : public quiet_pool<Policy> {
 public:
  /// What is committed or uncommitted as a whole.
  static constexpr u64 unit_bytes = unit_of_growth<Policy>;

  partial_pool(u32 units, u32 committed)
      : quiet_pool<Policy>{units * unit_bytes, 0}, growth_{std::vector<u64>{committed * unit_bytes, 0}} {
    initialize();
  }

  void initialize() const {
    this->allocator().initialize({}, growth_.data());
    synchronize();
  }
  u64* committed_bytes() const { return growth_.data(); }
  u32 committed() const { return static_cast<u32>(growth_[0] / unit_bytes); }
  void extend(u32 from, u32 to, stream_view on = {}) const {
    this->allocator().extend(from * unit_bytes, to * unit_bytes, growth_.data(), on);
  }
  u32 used_end() const {
    device_buffer<u64> const end(1);
    this->allocator().find_used_end(committed() * unit_bytes, end.data());
    synchronize();
    return static_cast<u32>(end[0] / unit_bytes);
  }
  /// How many units stayed.
  u64 decommit(u32 from, u32 to) const {
    device_buffer<u64> const stay(1);
    this->allocator().decommit(from * unit_bytes, to * unit_bytes, stay.data());
    synchronize();
    return stay[0];
  }

  u64 begin() const {
    if constexpr (requires { this->allocator().untouched_pool(); })
      return reinterpret_cast<u64>(this->allocator().untouched_pool().begin);
    else return reinterpret_cast<u64>(this->allocator().large().table().pool());
  }
  u32 unit_of(void const* memory) const {
    return static_cast<u32>((reinterpret_cast<u64>(memory) - begin()) / unit_bytes);
  }
  u64 free_units() const { return count_slots_by_grid(this->allocator(), unit_bytes); }

  /// Every unit of the first `expected` can be had, and no other.
  void expect_committed(u32 expected, u64 ignored = 0) const {
    this->expect_quiet(0, ignored);
    EXPECT_EQ(this->allocator().snapshot().statistics().pool_bytes, expected * unit_bytes);
    EXPECT_EQ(free_units(), expected);
    auto blocks = allocate(*this, {1, expected + 3}, unit_bytes);
    std::erase(blocks, nullptr);
    std::set<u32> units;
    for (void const* block : blocks) units.insert(unit_of(block));
    EXPECT_EQ(blocks.size(), expected);
    EXPECT_EQ(units.size(), expected);
    for (u32 const unit : units) EXPECT_LT(unit, expected);
    release(*this, blocks);
    this->expect_quiet(0, ignored);
    EXPECT_EQ(free_units(), expected);
  }

 private:
  device_buffer<u64> growth_;
};

}  // namespace warpheap::test
