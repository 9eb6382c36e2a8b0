// SPDX-License-Identifier: Apache-2.0
// A hash table for each partition, all of them in three arrays: tuples in chains, a chain a bucket.
//
// A partition of n tuples has as many buckets as the least power of two that is n or more. That is
// less than 2n, or 1 if n is 1. So its buckets may start at twice its first tuple, and no scan is
// needed to place them.
//
// join.H1  links are tuple + 1; 0 ends a chain. So zeroed memory is a table of empty buckets.
// join.H2  all tuples of a bucket are in its chain, each once: an insertion is one exchange of the
//     bucket, and what it displaced becomes the link behind.
#pragma once

#include "partition.hpp"
#include "warpheap/util/bits.hpp"

namespace warpheap::tool::join { inline namespace WARPHEAP_BACKEND {

struct hash_table_view {
  table_view tuples;
  u32 const* first;  ///< of each partition
  u32 bits;
  u32* buckets;
  u32* next;

  /// The bucket of a key. An empty partition has none.
  WARPHEAP_DEVICE u32* bucket_of(u32 key) const {
    u32 const hash = hash_of(key), partition = partition_of(hash, bits);
    u32 const begin = first[partition], size = first[partition + 1] - begin;
    if (size == 0) return nullptr;
    u32 const buckets_less_1 = size == 1 ? 0 : (2u << highest_bit(size - 1)) - 1;
    return buckets + u64{2} * begin + (hash & buckets_less_1);
  }

  /// The first link from `link` on that leads to a tuple of this key; 0 if there is none.
  WARPHEAP_DEVICE u32 find(u32 link, u32 key) const {
    while (link && tuples.keys[link - 1] != key) link = next[link - 1];
    return link;
  }
};

/// Kernel: puts every tuple into its bucket's chain.
struct insert_tuples {
  WARPHEAP_DEVICE void operator()(hash_table_view table) const {
    u64 const i = global_thread_index();
    if (i >= table.tuples.size) return;
    // relaxed: the next kernel reads chains; this one only extends them. join.H2.
    table.next[i] =
        atomic_ref<u32>{*table.bucket_of(table.tuples.keys[i])}.exchange(static_cast<u32>(i + 1), order::relaxed);
  }
};

/// The hash tables over a partitioned table.
class hash_table {
 public:
  explicit hash_table(partitioned_table const& over)
      : over_{over}, buckets_(2 * u64{over.tuples().size}), next_(over.tuples().size) {}

  /// Puts the kernels on the default stream.
  void build() {
    warpheap::backend::fill_bytes(buckets_.data(), 0, buckets_.size_bytes());  // join.H1
    launch(thread_each(view().tuples.size), insert_tuples{}, view());
  }

  hash_table_view view() const { return {over_.tuples(), over_.first(), over_.bits(), buckets_.data(), next_.data()}; }

 private:
  partitioned_table const& over_;
  device_buffer<u32> buckets_, next_;
};

}}  // namespace warpheap::tool::join::WARPHEAP_BACKEND
