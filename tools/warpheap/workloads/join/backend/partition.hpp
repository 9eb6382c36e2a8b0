// SPDX-License-Identifier: Apache-2.0
// A table cut into partitions by the upper bits of its keys' hashes: count, scan, scatter. Tuples
// of a partition then lie together, so that a warp's lanes probe the same few buckets. Their order
// within the partition is that of the atomics, and nothing depends on it. Lanes with tuples of one
// partition add together, so a key that most tuples have costs no more than others.
#pragma once

#include "tables.hpp"
#include "warpheap/sync/warp_aggregate.hpp"

namespace warpheap::tool::join { inline namespace WARPHEAP_BACKEND {

inline constexpr u32 most_partition_bits = 16;

/// Kernel: counts the tuples of each partition.
struct count_tuples {
  WARPHEAP_DEVICE void operator()(table_view table, u32 bits, u32* counts) const {
    u64 const i = global_thread_index();
    bool const mine = i < table.size;
    u32 const here = simt::ballot(full_mask, mine);
    if (!mine) return;
    u32 const partition = partition_of(hash_of(table.keys[i]), bits);
    auto const group = group_by(here, partition);
    // relaxed: read by the next kernel.
    if (group.leads) atomic_ref<u32>{counts[partition]}.fetch_add(group.size, order::relaxed);
  }
};

/// Kernel of one thread block: writes where each partition starts, twice, and where the last one
/// ends. `sums` has room for a number a warp.
struct scan_partitions {
  WARPHEAP_DEVICE void operator()(u32 const* counts, u32* first, u32* cursors, u32 partitions, u32* sums) const {
    u32 const each = (partitions + simt::block_dim() - 1) / simt::block_dim();
    u32 const begin = least(simt::thread_index() * each, partitions), end = least(begin + each, partitions);
    u32 own = 0;
    for (u32 i = begin; i < end; ++i) own += counts[i];
    u32 before = sum_of_lanes_below(own);
    if (simt::lane_id() == warp_lanes - 1) sums[simt::warp_id()] = before + own;
    simt::sync_block();  // the sums are there
    for (u32 warp = 0; warp < simt::warp_id(); ++warp) before += sums[warp];
    for (u32 i = begin; i < end; ++i) {
      first[i] = cursors[i] = before;
      before += counts[i];
    }
    if (simt::thread_index() == simt::block_dim() - 1) first[partitions] = before;
  }

 private:
  WARPHEAP_DEVICE static u32 least(u32 left, u32 right) { return left < right ? left : right; }

  WARPHEAP_DEVICE static u32 sum_of_lanes_below(u32 own) {
    u32 sum = own;
    for (u32 step = 1; step < warp_lanes; step *= 2) {
      u32 const lane = simt::lane_id();
      u32 const other = simt::shuffle(full_mask, sum, lane >= step ? lane - step : lane);
      if (lane >= step) sum += other;
    }
    return sum - own;
  }
};

/// Kernel: copies the tuples to their partitions.
struct scatter_tuples {
  WARPHEAP_DEVICE void operator()(table_view from, table_view to, u32 bits, u32* cursors) const {
    u64 const i = global_thread_index();
    bool const mine = i < from.size;
    u32 const here = simt::ballot(full_mask, mine);
    if (!mine) return;
    u32 const key = from.keys[i];
    u32 const partition = partition_of(hash_of(key), bits);
    u32 const place = aggregated_fetch_add(group_by(here, partition), cursors[partition]);
    to.keys[place] = key;
    to.payloads[place] = from.payloads[i];
  }
};

/// A table, and the same cut into partitions.
class partitioned_table {
 public:
  partitioned_table(join_table const& table, u32 bits)
      : bits_{bits},
        source_{table},
        cut_{table.tuples()},
        counts_(partitions()),
        cursors_(partitions()),
        first_(partitions() + 1),
        sums_(scan_shape.threads / warp_lanes) {}

  /// Puts the kernels on the default stream.
  void cut() {
    warpheap::backend::fill_bytes(counts_.data(), 0, counts_.size_bytes());
    launch(thread_each(source_.size()), count_tuples{}, source_.view(), bits_, counts_.data());
    launch(scan_shape, scan_partitions{}, counts_.data(), first_.data(), cursors_.data(), partitions(), sums_.data());
    launch(thread_each(source_.size()), scatter_tuples{}, source_.view(), cut_.view(), bits_, cursors_.data());
  }

  table_view tuples() const { return cut_.view(); }
  u32 const* first() const { return first_.data(); }
  u32 bits() const { return bits_; }
  u32 partitions() const { return 1u << bits_; }

 private:
  static constexpr launch_shape scan_shape{1, 1024};

  u32 bits_;
  device_table source_, cut_;
  device_buffer<u32> counts_, cursors_, first_, sums_;
};

}}  // namespace warpheap::tool::join::WARPHEAP_BACKEND
