// SPDX-License-Identifier: Apache-2.0
// What creation policies have alike: those whose handle is a table, which is a view of a pool and
// of its metadata. A policy derives from policy_base and adds how blocks are found and given back.
//
// The policy has
//
//   plan(pool_bytes)      what the table is made of, beside an address; throws
//                         std::invalid_argument for a pool that the policy cannot manage
//   usable_size(memory)   and what slot_survey.hpp asks for
//
// The table is made of the metadata's address and a plan, and has the names of unit_pool.hpp,
// metadata_bytes() and initialize(on). A policy that differs has a function of its own.
#pragma once

#include "../slot_survey.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace creation {

template <class Policy, class Table>
class policy_base {
 public:
  /// Lanes of a warp may call together with different heaps.
  static constexpr bool supports_mixed_heaps = true;

  /// Whether `memory` is a live block.
  WARPHEAP_DEVICE bool owns(void const* memory) const { return self().usable_size(memory) != 0; }
  /// Whether `memory` lies in the pool, be it a block or not.
  WARPHEAP_DEVICE bool contains(void const* memory) const { return table_.contains(memory); }
  /// Blocks of `bytes` bytes that could be allocated now; exact when the heap is quiet. One lane
  /// looks at every place.
  WARPHEAP_DEVICE u64 available_slots(size_t bytes) const { return count_slots_alone(self(), bytes); }

  /// Bytes to reserve for a pool of `pool_bytes`: the pool, its metadata, and room to align it.
  /// Throws as plan() does.
  WARPHEAP_HOST static size_t required_bytes(size_t pool_bytes) {
    Table const planned{nullptr, Policy::plan(pool_bytes)};
    return planned.pool_span() + planned.metadata_bytes() + planned.pool_alignment();
  }
  /// The heap in memory of required_bytes(pool_bytes) bytes, which may start anywhere. initialize()
  /// must follow.
  WARPHEAP_HOST static Policy place(void* memory, size_t pool_bytes) {
    auto const plan = Policy::plan(pool_bytes);
    Table const planned{nullptr, plan};
    u64 const start = align_up(reinterpret_cast<u64>(memory), planned.pool_alignment());
    Policy made;
    static_cast<policy_base&>(made).table_ = Table{reinterpret_cast<u8*>(start) + planned.pool_span(), plan};
    return made;
  }
  /// Makes everything free, in order on stream `on`; does not wait.
  WARPHEAP_HOST void initialize(stream_view on) const { table_.initialize(on); }

  WARPHEAP_HOST size_t pool_bytes() const { return table_.pool_bytes(); }
  WARPHEAP_HOST size_t metadata_bytes() const { return table_.metadata_bytes(); }
  WARPHEAP_HOST_DEVICE Table const& table() const { return table_; }

 protected:
  /// The key by which lanes find those to act with as one: equal for the same heap and the same
  /// `what`, which is less than the metadata's bytes.
  WARPHEAP_DEVICE u64 key_of(u32 what = 0) const { return reinterpret_cast<u64>(table_.metadata()) + what; }

  /// Counts a refused call.
  WARPHEAP_DEVICE void* refuse() const {
    table_.add_count(Table::count::failures, 1);
    return nullptr;
  }

  Table table_;

 private:
  WARPHEAP_HOST_DEVICE Policy const& self() const { return static_cast<Policy const&>(*this); }
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::creation
