// SPDX-License-Identifier: Apache-2.0
// The sixteen sizes of Halloc's blocks: 1, 2, 4 or 8 chunks of 16, 24, 256 or 384 bytes.
//
//   size     0   1   2   3   4   5    6    7    8    9   10   11    12    13    14    15
//   bytes   16  24  32  48  64  96  128  192  256  384  512  768  1024  1536  2048  3072
//   chunk   16  24  16  24  16  24   16   24  256  384  256  384   256   384   256   384
//   chunks   1   1   2   2   4   4    8    8    1    1    2    2     4     4     8     8
//
// Sizes double, with one more half way: a count of leading zeros finds a size, and no request above
// 16 bytes wastes more than a third of its block. Blocks of an even size are aligned to their
// bytes, those of an odd size to a third of them.
// Source: Adinetz and Pleiter 2014.
#pragma once

#include "../../../util/bits.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace halloc_parts {

inline constexpr u32 sizes = 16;
inline constexpr u32 kinds = 4;  ///< of chunks
inline constexpr u32 largest_bytes = 3072;

WARPHEAP_HOST_DEVICE constexpr u32 block_bytes(u32 size) { return (size % 2 ? 24u : 16u) << (size / 2); }
/// The kind of a size's chunks, their bytes, and how many make a block, as log2.
WARPHEAP_HOST_DEVICE constexpr u32 kind_of(u32 size) { return size / 8 * 2 + size % 2; }
WARPHEAP_HOST_DEVICE constexpr u32 chunk_bytes(u32 kind) { return (kind % 2 ? 24u : 16u) << (kind / 2 * 4); }
WARPHEAP_HOST_DEVICE constexpr u32 length_of(u32 size) { return size / 2 % 4; }
/// The size of blocks of 2^length chunks of a kind.
WARPHEAP_HOST_DEVICE constexpr u32 size_of(u32 kind, u32 length) { return kind / 2 * 8 + length * 2 + kind % 2; }
/// The alignment of blocks of a size, in a slab that starts at a multiple of it.
WARPHEAP_HOST_DEVICE constexpr u32 alignment_of(u32 size) { return (size % 2 ? 8u : 16u) << (size / 2); }

/// The smallest size of at least `bytes`, in [1, largest_bytes].
WARPHEAP_HOST_DEVICE constexpr u32 size_for(u32 bytes) {
  if (bytes <= 16) return 0;
  u32 const doubling = highest_bit(bytes - 1);
  return 2 * (doubling - 4) + (bytes <= 3u << (doubling - 1) ? 1 : 2);
}
/// The smallest size of at least `bytes` whose blocks are aligned to `alignment`, a power of two;
/// `sizes` if there is none.
WARPHEAP_HOST_DEVICE constexpr u32 aligned_size_for(u64 alignment, u64 bytes) {
  if (bytes > largest_bytes) return sizes;
  u32 size = size_for(static_cast<u32>(bytes));
  while (size < sizes && alignment_of(size) < alignment) ++size;
  return size;
}

static_assert(size_for(1) == 0 && size_for(16) == 0 && size_for(17) == 1 && size_for(24) == 1 && size_for(25) == 2);
static_assert(size_for(32) == 2 && size_for(33) == 3 && size_for(192) == 7 && size_for(193) == 8 && size_for(257) == 9);
static_assert(size_for(3072) == 15 && block_bytes(15) == 3072 && kind_of(15) == 3 && chunk_bytes(3) == 384);
static_assert(size_of(kind_of(13), length_of(13)) == 13 && chunk_bytes(kind_of(13)) << length_of(13) == 1536);
static_assert(aligned_size_for(64, 16) == 4 && aligned_size_for(8, 20) == 1 && aligned_size_for(16, 20) == 2);
static_assert(aligned_size_for(1024, 2500) == 15 && aligned_size_for(2048, 2500) == sizes);

/// Chunks of a kind in a slab: a multiple of 8, so that blocks of each length fill it, and of 64
/// where that costs nothing.
WARPHEAP_HOST_DEVICE constexpr u32 capacity_of(u32 kind, u32 slab_log2) {
  u32 const units = 1u << (slab_log2 - 4 - kind / 2 * 4);
  u32 const chunks = kind % 2 ? units * 2 / 3 : units;
  return chunks >= 6400 ? chunks & ~63u : chunks & ~7u;
}

}}}  // namespace warpheap::WARPHEAP_BACKEND::halloc_parts
