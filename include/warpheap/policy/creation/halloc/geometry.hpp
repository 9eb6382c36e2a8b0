// SPDX-License-Identifier: Apache-2.0
// Where every part of a heap lies: the offsets of its metadata, and the plan by which a pool is
// divided.
#pragma once

#include "../../../sync/shared_pass.hpp"
#include "../shared/pool_units.hpp"
#include "../tbuddy.hpp"
#include "config.hpp"
#include "words.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace halloc_parts {

using large_heap = creation::tbuddy<creation::tbuddy_config{.page_bytes = 4096}>;

/// Counts that no invariant rests on. Each sum of cycles is followed by its longest part.
enum class count : u32 {
  double_frees,
  foreign_frees,
  failures,
  replacements,
  probes,
  searches,
  looks,
  word_looks,
  dry_rows,
  waits,
  replacing,
  longest_replacing,
  caching,
  longest_caching
};
inline constexpr u32 count_kinds = 14;

/// Where every part of the metadata lies, computed from a base and one word.
///
///   63                   32 31    28 27   24 23          0
///  |           0            | rows   |log2-14|   slabs     |     rows as log2
struct slab_geometry {
  u64 packed = 0;

  static constexpr u32 max_slabs = (1u << 24) - 2;

  WARPHEAP_HOST_DEVICE static constexpr slab_geometry of(u32 slabs, u32 slab_log2, u32 rows_log2) {
    return {slabs | u64{slab_log2 - 14} << 24 | u64{rows_log2} << 28};
  }

  WARPHEAP_HOST_DEVICE constexpr u32 slabs() const { return static_cast<u32>(packed & 0xff'ffff); }
  WARPHEAP_HOST_DEVICE constexpr u32 slab_log2() const { return static_cast<u32>(packed >> 24 & 15) + 14; }
  WARPHEAP_HOST_DEVICE constexpr u32 rows() const { return 1u << (packed >> 28 & 15); }
  WARPHEAP_HOST_DEVICE constexpr u32 capacity(u32 kind) const { return capacity_of(kind, slab_log2()); }
  /// Words of a slab of a kind.
  WARPHEAP_HOST_DEVICE constexpr u32 words(u32 kind) const { return (capacity(kind) + word_chunks - 1) / word_chunks; }

  static constexpr u32 spacing = 128, sets = 25;
  static constexpr u32 orders = 31;  ///< of TBuddy's blocks
  using pass_type = shared_pass<halloc_parts::sizes + orders>;

  WARPHEAP_HOST_DEVICE constexpr u64 record_bytes() const { return spacing + (u64{1} << (slab_log2() - 6)); }
  WARPHEAP_HOST_DEVICE constexpr u64 records_offset() const { return u64{rows()} * halloc_parts::sizes * spacing; }
  WARPHEAP_HOST_DEVICE constexpr u64 roles_offset() const { return records_offset() + slabs() * record_bytes(); }
  WARPHEAP_HOST_DEVICE constexpr u64 sets_offset() const {
    return align_up(roles_offset() + 4 * u64{slabs()}, spacing);
  }
  WARPHEAP_HOST_DEVICE constexpr u64 set_bytes() const {
    u64 const low = (slabs() + 63) / 64;
    return align_up(8 * (low + (low + 63) / 64), spacing);
  }
  WARPHEAP_HOST_DEVICE constexpr u64 pass_offset() const { return sets_offset() + sets * set_bytes(); }
  WARPHEAP_HOST_DEVICE constexpr u64 moving_offset() const { return pass_offset() + pass_type::bytes; }
  WARPHEAP_HOST_DEVICE constexpr u64 counts_offset() const { return moving_offset() + spacing; }
  WARPHEAP_HOST_DEVICE constexpr u64 metadata_bytes() const {
    return align_up(counts_offset() + 8 * count_kinds, spacing);
  }
};

/// Where the parts of a heap lie in its memory.
struct plan {
  slab_geometry geometry;
  size_t large_bytes;  ///< TBuddy's
  bool split;

  WARPHEAP_HOST size_t slab_bytes() const { return split ? size_t{geometry.slabs()} << geometry.slab_log2() : 0; }
  WARPHEAP_HOST size_t total_bytes() const {
    return large_heap::required_bytes(large_bytes) + (split ? start_alignment + slab_bytes() : 0) +
           slab_geometry::spacing + geometry.metadata_bytes();
  }
  WARPHEAP_HOST u8* slabs_at(void* memory) const {
    return reinterpret_cast<u8*>(
        align_up(reinterpret_cast<u64>(memory) + large_heap::required_bytes(large_bytes), start_alignment));
  }
  WARPHEAP_HOST u8* metadata_at(void* memory) const {
    u64 const end = split ? reinterpret_cast<u64>(slabs_at(memory)) + slab_bytes()
                          : reinterpret_cast<u64>(memory) + large_heap::required_bytes(large_bytes);
    return reinterpret_cast<u8*>(align_up(end, slab_geometry::spacing));
  }

  /// of a pool of slabs alone, the same as of TBuddy's pool
  static constexpr size_t start_alignment = size_t{1} << 20;
};

WARPHEAP_HOST inline constexpr u32 least_of(u32 a, u32 b) { return a < b ? a : b; }

/// The plan of a heap of `pool_bytes` on a device of `multiprocessors`. Throws
/// std::invalid_argument unless it has 1 to max_slabs slabs and memory for large blocks.
WARPHEAP_HOST inline plan plan_for(size_t pool_bytes, creation::halloc_config const& config, u32 multiprocessors) {
  u32 slab_log2 = pool_bytes >> 20 != 0 ? log2_floor(pool_bytes / 64) : 14;
  slab_log2 = least_of(slab_log2 < 14 ? 14 : slab_log2, log2_floor(config.slab_bytes));
  bool const split = config.split_percent != 0;
  size_t const pages = pool_bytes / 4096, for_slabs = split ? pages * config.split_percent / 100 : pages;
  size_t const slabs = for_slabs * 4096 >> slab_log2;
  size_t const large = split ? pages * 4096 - (slabs << slab_log2) : pages * 4096;
  if (slabs == 0 || slabs > slab_geometry::max_slabs || large == 0)
    creation::refuse_units("halloc", "slabs", pool_bytes, u64{1} << slab_log2, slabs, slab_geometry::max_slabs);
  u64 const shares = slabs / config.slabs_per_row;
  u32 const wished = shares != 0 ? static_cast<u32>(shares) : 1;
  u32 const rows_log2 =
      least_of(least_of(log2_floor(wished), log2_floor(config.most_rows)), log2_ceil(multiprocessors));
  return {slab_geometry::of(static_cast<u32>(slabs), slab_log2, rows_log2), large, split};
}

}}}  // namespace warpheap::WARPHEAP_BACKEND::halloc_parts
