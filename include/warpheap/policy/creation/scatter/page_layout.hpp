// SPDX-License-Identifier: Apache-2.0
// How a page is divided into chunks of one size. Sizes count in units of 16 bytes.
//
//   more than (P - 8) / 33 bytes    flat: up to 32 chunks, one bit each in the page's own word
//   less                            hierarchical: f segments of 32 chunks, and a tail of a chunks,
//                                   at most 1,024 in all
//
//     f = P / (32 c + 4)    a = (P - 4 f - 32 c f - 4) / c
//
// Each segment has a field of 32 bits, the tail one more. Chunk i starts at i * c. In the paper's
// layout the fields take the last bytes of a hierarchical page, which stay unused here. Our fields
// lie beside the pool: no user writes over them, and they need no set-up when a page gets one.
// Source: Eckert 2014, sections 2.4.6 and 4.3.5, where the count of segments lacks a factor of 32.
#pragma once

#include "config.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace scatter_parts {

/// dividend / divisor for a dividend below 2^21. On a GPU by an approximate reciprocal: it is off
/// by 2 units in the last place of 24 bits, while (dividend + 0.5) / divisor is at least 0.5 /
/// divisor away from the next whole number.
WARPHEAP_HOST_DEVICE constexpr u32 small_quotient(u32 dividend, u32 divisor) {
#if defined(__CUDA_ARCH__)
  if (!__builtin_is_constant_evaluated()) {
    float reciprocal;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(reciprocal) : "f"(static_cast<float>(divisor)));
    return static_cast<u32>((static_cast<float>(dividend) + 0.5f) * reciprocal);
  }
#endif
  return dividend / divisor;
}

/// The `count` lowest set bits of a field, or all of it if it has no more. `count` is at least 1.
WARPHEAP_HOST_DEVICE constexpr u32 lowest_of_field(u32 field, u32 count) {
  if (count == 1) return field & (0 - field);  // most often, and far less work
  return count < popcount(field) ? field & low_mask32(nth_bit(field, count)) : field;
}

/// Index of the set bit that has `rank` set bits below it. Chunks that were taken together mostly
/// lie in a row.
WARPHEAP_HOST_DEVICE constexpr u32 nth_of_field(u32 field, u32 rank) {
  u32 const lowest = field & (0 - field);
  return (field & (field + lowest)) == 0 ? lowest_bit(field) + rank : nth_bit(field, rank);
}

template <creation::scatter_config Config>
struct page_layout {
  static constexpr u32 unit_bytes = 16;
  static constexpr u32 page_bytes = Config.page_bytes;
  static constexpr u32 page_log2 = log2_floor(page_bytes);
  static constexpr u32 page_units = page_bytes / unit_bytes;
  static constexpr u32 segment_chunks = 32;
  static constexpr u32 most_chunks = 1024;
  /// Chunks of this many units and more lie in flat pages.
  static constexpr u32 least_flat_units = (page_bytes - 8) / 33 / unit_bytes + 1;

  WARPHEAP_HOST_DEVICE static constexpr bool is_flat(u32 units) { return units >= least_flat_units; }

  /// How many chunks of `units` units, at most a page's, a page has.
  WARPHEAP_HOST_DEVICE static constexpr u32 capacity(u32 units) {
    if (is_flat(units)) {
      u32 const fit = small_quotient(page_units, units);
      return fit < segment_chunks ? fit : segment_chunks;
    }
    // The capacities are few and small enough to lie in one constant: 56 bits for pages of 4 KiB.
    if constexpr (capacity_bits * (least_flat_units - 1) <= 64) {
      constexpr u64 packed = pack_capacities();
      return static_cast<u32>(packed >> (capacity_bits * (units - 1))) & ((1u << capacity_bits) - 1);
    } else {
      return hierarchical_capacity(units);
    }
  }

  WARPHEAP_HOST_DEVICE static constexpr u32 hierarchical_capacity(u32 units) {
    u32 const segments = small_quotient(page_bytes / 4, 8 * unit_bytes * units + 1);
    u32 const used = segments * (segment_chunks * unit_bytes * units + 4) + 4;
    u32 const tail = used < page_bytes ? small_quotient((page_bytes - used) / unit_bytes, units) : 0;
    u32 const chunks = segments * segment_chunks + tail;
    return chunks < most_chunks ? chunks : most_chunks;
  }

  /// Bits that a capacity takes.
  static constexpr u32 capacity_bits = is_flat(1) ? 0 : log2_floor(hierarchical_capacity(1)) + 1;
  /// The capacities of hierarchical pages, by size, as far as there is room for them.
  WARPHEAP_HOST_DEVICE static constexpr u64 pack_capacities() {
    u64 packed = 0;
    for (u32 units = least_flat_units - 1; units != 0; --units)
      packed = packed << capacity_bits | hierarchical_capacity(units);
    return packed;
  }

  /// Fields of 32 bits that the smallest chunks need; 0 if all pages are flat.
  static constexpr u32 fields = is_flat(1) ? 0 : (hierarchical_capacity(1) + segment_chunks - 1) / segment_chunks;

  /// The chunks of segment `segment` that exist in a page of `capacity`.
  WARPHEAP_HOST_DEVICE static constexpr u32 valid_mask(u32 capacity, u32 segment) {
    u32 const before = segment * segment_chunks;
    if (capacity >= before + segment_chunks) return ~0u;
    return low_mask32(capacity > before ? capacity - before : 0);
  }

  /// The chunk of `units` units that starts `offset` bytes into its page; no_chunk if none does. It
  /// may lie beyond the page's last chunk: the bit of such a chunk is never set.
  WARPHEAP_HOST_DEVICE static constexpr u32 index_at(u32 offset, u32 units) {
    u32 const index = small_quotient(offset / unit_bytes, units);
    u32 const bits = is_flat(units) ? segment_chunks : fields * segment_chunks;
    return index < bits && index * units * unit_bytes == offset ? index : no_chunk;
  }
  static constexpr u32 no_chunk = ~0u;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::scatter_parts
