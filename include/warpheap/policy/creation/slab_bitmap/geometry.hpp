// SPDX-License-Identifier: Apache-2.0
// Where everything of a heap lies, computed from one address and one packed word.
//
//   base - slabs * slab_bytes   slab 0 | slab 1 | ...   the pool; aligned to the slab and to 4 KiB
//   base                        records                 one a slab: descriptor | header | bitmap
//                               per-SM caches           one entry a cache and class: active slab
//                               indexes                 free | reclaimable | two a class
//                               control                 unmet demand a class, counts
//
// Descriptors lie at least 128 bytes apart: additions to closer ones are slower.
// Metadata holds no pointers, so a pool may be mapped elsewhere.
#pragma once

#include "../../../structure/size_class.hpp"
#include "words.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace slab_bitmap_parts {

/// The sizes of a heap in one word.
///
///   63      48 47      40 39      32 31      24 23         0
///  |caches - 1|    0     |   slab   |    0     |  slabs    |   slab: log2 of its bytes
struct slab_geometry {
  u64 packed = 0;

  static constexpr u32 max_slabs = 1u << 24;

  WARPHEAP_HOST_DEVICE constexpr u32 slabs() const { return static_cast<u32>(packed) & (max_slabs - 1); }
  WARPHEAP_HOST_DEVICE constexpr u32 slab_log2() const { return static_cast<u32>(packed >> 32) & 0xff; }
  WARPHEAP_HOST_DEVICE constexpr u32 slab_bytes() const { return 1u << slab_log2(); }
  WARPHEAP_HOST_DEVICE constexpr u64 pool_bytes() const { return u64{slabs()} << slab_log2(); }
  /// Slabs that `bytes` bytes take, more than 0.
  WARPHEAP_HOST_DEVICE constexpr u64 slabs_for(u64 bytes) const { return ((bytes - 1) >> slab_log2()) + 1; }
  WARPHEAP_HOST_DEVICE constexpr u32 sm_caches() const { return sm_cache_mask() + 1; }
  WARPHEAP_HOST_DEVICE constexpr u32 sm_cache_mask() const { return static_cast<u32>(packed >> 48); }
  /// Classes of blocks up to a whole slab: one for 16, 32, 48, 64 bytes each, then four a doubling.
  WARPHEAP_HOST_DEVICE constexpr u32 classes() const { return 4 * slab_log2() - 20; }
  WARPHEAP_HOST_DEVICE constexpr u32 capacity(u32 size_class) const { return block_count(size_class, slab_log2()); }

  /// log2 of the caches that a multiprocessor uses for a class, so that warps seldom wait. If there
  /// are fewer caches in all, multiprocessors share them.
  WARPHEAP_HOST_DEVICE constexpr u32 sm_caches_used_log2(u32 size_class) const {
    // A block has at most 2^(6 + size_class / 4) bytes. Where a slab has 2^14 of them, a
    // multiprocessor uses one cache; where it has half as many, two: in a burst a slab at its
    // high watermark costs more than another slab.
    u32 const size_log2 = 20 + size_class / 4;
    u32 const wanted = size_log2 > slab_log2() ? size_log2 - slab_log2() : 0;
    return wanted < max_sm_caches_used_log2 ? wanted : max_sm_caches_used_log2;
  }
  static constexpr u32 max_sm_caches_used_log2 = 6;
  /// Whether there are enough slabs for each cache to have its own.
  WARPHEAP_HOST_DEVICE constexpr bool has_many_slabs() const { return slabs() >= 1u << 14; }
  /// Bitmap words of a slab.
  WARPHEAP_HOST_DEVICE constexpr u32 words() const { return slab_bytes() / (min_class_bytes * 64); }
  WARPHEAP_HOST_DEVICE constexpr u32 record_bytes() const {
    return bitmap_offset + slab_bytes() / (8 * min_class_bytes);
  }
  /// In a record. The header has its own sector: all read it, while all change the descriptor.
  static constexpr u32 header_offset = 32;
  static constexpr u32 bitmap_offset = 64;

  // Offsets from the base; the first two are multiples of 64 bytes.
  WARPHEAP_HOST_DEVICE constexpr u64 sm_caches_offset() const { return u64{slabs()} * record_bytes(); }
  WARPHEAP_HOST_DEVICE constexpr u64 indexes_offset() const {
    return sm_caches_offset() + 16 * (u64{classes()} * sm_caches());
  }
  /// Words from index to index, at least slab_index::words_for(): every look computes this sum.
  WARPHEAP_HOST_DEVICE constexpr u32 index_words() const { return slabs() / 64 + slabs() / 2048 + 2; }
  WARPHEAP_HOST_DEVICE constexpr u32 index_count() const { return 2 + 2 * classes(); }
  WARPHEAP_HOST_DEVICE constexpr u64 control_offset() const {
    return indexes_offset() + align_up(index_count() * index_words() * 8, 128);
  }
  /// One count of unmet demand a class, and those of slab_table::count.
  WARPHEAP_HOST_DEVICE constexpr u64 control_bytes() const { return align_up(8 * (u64{classes()} + 4), 128); }
  WARPHEAP_HOST_DEVICE constexpr u64 metadata_bytes() const { return control_offset() + control_bytes(); }
  WARPHEAP_HOST_DEVICE constexpr u64 alignment() const { return slab_bytes() > 4096 ? slab_bytes() : 4096; }
};

/// For a pool of 1 MiB or more. Slabs are 16 KiB to 2^max_slab_log2 bytes, as large as leaves 4,096
/// of them. Up to 64 caches a multiprocessor, as far as that leaves 8 slabs a cache: with 16, churn
/// in small pools took 40% longer; with 4, bursts of mixed sizes that fill one did.
WARPHEAP_HOST_DEVICE constexpr slab_geometry slab_geometry_for(u64 pool_bytes, u32 multiprocessors, u32 max_slab_log2) {
  u32 slab_log2 = log2_floor(pool_bytes) - 12;
  if (slab_log2 < 14) slab_log2 = 14;
  if (slab_log2 > max_slab_log2) slab_log2 = max_slab_log2;
  while ((pool_bytes >> slab_log2) >= slab_geometry::max_slabs) ++slab_log2;
  u64 const slabs = pool_bytes >> slab_log2;
  u32 caches_log2 = log2_ceil(multiprocessors) + slab_geometry::max_sm_caches_used_log2;
  while (caches_log2 > 0 && (u64{8} << caches_log2) > slabs) --caches_log2;
  return {slabs | u64{slab_log2} << 32 | ((u64{1} << caches_log2) - 1) << 48};
}

}}}  // namespace warpheap::WARPHEAP_BACKEND::slab_bitmap_parts
