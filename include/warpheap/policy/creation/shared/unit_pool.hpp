// SPDX-License-Identifier: Apache-2.0
// Where the memory of a heap lies whose pool is cut into units of one size: pages, frames, chunks.
//
//   pool()       unit 0 | unit 1 | ...   starts at a multiple of pool_alignment()
//                padding                 to a multiple of MetadataAlignment
//   metadata()   counts                  128 bytes, unless the table says otherwise
//                ...                     the table's
//
// A table derives from it. One address and one number say where everything is, so a handle has 16
// bytes.
#pragma once

#include "../../../platform/simt.hpp"
#include "../../../util/bits.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace creation {

/// Counts that no invariant rests on: frees of blocks that were not allocated, frees of pointers to
/// no block, and refused calls.
enum class count : u32 { double_frees, foreign_frees, failures };

/// View of a pool of units, numbered from 0; trivially copyable, owns nothing.
///
/// MetadataAlignment    1 where all units are multiples of 128: nvcc 13.0 finds that padding is 0,
///                      but compiles queue and scatter to larger code then
template <size_t UnitBytes, size_t PoolAlignment = 4096, class Number = u32, u64 MetadataAlignment = 128>
class unit_pool {
 public:
  using count = creation::count;
  /// No unit.
  static constexpr Number none = ~Number{0};
  WARPHEAP_HOST_DEVICE static constexpr size_t pool_alignment() { return PoolAlignment; }
  /// Alignment of every unit: the largest power of two that divides UnitBytes, up to the pool's.
  static constexpr size_t unit_alignment =
      (UnitBytes & (0 - UnitBytes)) < PoolAlignment ? UnitBytes & (0 - UnitBytes) : PoolAlignment;

  unit_pool() = default;
  WARPHEAP_HOST_DEVICE constexpr unit_pool(u8* metadata, Number units) : base_{metadata}, units_{units} {}

  WARPHEAP_HOST_DEVICE constexpr Number units() const { return units_; }
  WARPHEAP_HOST_DEVICE constexpr u64 pool_bytes() const { return u64{units_} * UnitBytes; }
  /// From the pool's start to the metadata.
  WARPHEAP_HOST_DEVICE constexpr u64 pool_span() const { return align_up(pool_bytes(), MetadataAlignment); }
  WARPHEAP_HOST_DEVICE u8* pool() const { return base_ - pool_span(); }
  WARPHEAP_HOST_DEVICE u8* metadata() const { return base_; }
  WARPHEAP_HOST_DEVICE void* address(Number unit) const { return pool() + u64{unit} * UnitBytes; }
  WARPHEAP_HOST_DEVICE u64 offset_of(void const* memory) const {
    return reinterpret_cast<u64>(memory) - reinterpret_cast<u64>(pool());
  }
  WARPHEAP_HOST_DEVICE bool contains(void const* memory) const { return offset_of(memory) < pool_bytes(); }
  /// The unit that starts at `memory`; none if no unit does.
  WARPHEAP_HOST_DEVICE Number number_of(void const* memory) const {
    u64 const offset = offset_of(memory);
    bool const starts_one = offset < pool_bytes() && offset % UnitBytes == 0;
    return starts_one ? static_cast<Number>(offset / UnitBytes) : none;
  }

  WARPHEAP_DEVICE void add_count(count which, u64 more = 1) const {
    // relaxed: it is not read before the kernel ends.
    atomic_ref<u64>{reinterpret_cast<u64*>(base_)[static_cast<u32>(which)]}.fetch_add(more, order::relaxed);
  }

 protected:
  u8* base_ = nullptr;  ///< end of the pool, begin of the metadata
  Number units_ = 0;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::creation
