// SPDX-License-Identifier: Apache-2.0
// The tables of a join in device memory, and the hash that cuts tables into partitions and
// partitions into buckets.
//
// A hash of 32 bits is a bijection of the keys. Its upper bits choose the partition, its lower bits
// the bucket in the partition, so the two choices are independent.
#pragma once

#include "measure/measure.hpp"
#include "warpheap/util/random.hpp"
#include "workloads/join/settings.hpp"

namespace warpheap::tool::join { inline namespace WARPHEAP_BACKEND {

/// Threads of a thread block, and thread blocks that fit on a multiprocessor, whatever registers
/// the allocator needs.
inline constexpr u32 block_threads = 128, resident_thread_blocks = 8;

/// The shape of a grid with a thread for each of `count` tuples or other items. Its warps are
/// whole.
inline launch_shape thread_each(u64 count) { return shape_for(count, block_threads); }

WARPHEAP_HOST_DEVICE constexpr u32 hash_of(u32 key) { return mix32(key); }
WARPHEAP_HOST_DEVICE constexpr u32 partition_of(u32 hash, u32 bits) { return bits == 0 ? 0 : hash >> (32 - bits); }

/// A table as kernels take it.
struct table_view {
  u32* keys;
  u32* payloads;
  u32 size;
};

/// A table in device memory.
class device_table {
 public:
  /// A table without contents yet.
  explicit device_table(u64 tuples) : keys_(tuples), payloads_(tuples) {}
  explicit device_table(join_table const& table) : keys_{table.keys}, payloads_{table.payloads} {}

  u32 size() const { return static_cast<u32>(keys_.size()); }
  table_view view() const { return {keys_.data(), payloads_.data(), size()}; }

 private:
  device_buffer<u32> keys_, payloads_;
};

}}  // namespace warpheap::tool::join::WARPHEAP_BACKEND
