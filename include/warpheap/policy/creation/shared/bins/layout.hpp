// SPDX-License-Identifier: Apache-2.0
// Where the blocks of a bin lie, and which block an address belongs to: arithmetic alone.
//
// A chunk is cut into pages of 4 KiB. A bin is one page (some classes' may be several), begins with
// a header of 128 bytes, and holds blocks of one power of two. A page less its header is no power
// of two, so a bin of small blocks would lose its last blocks. Therefore the first pages of a chunk
// are special: each is cut into 31 tails behind its header. Every bin has a tail of its own, which
// serves as if it followed the bin:
//
//   special bin      | header | tail 0 | tail 1 | ... | tail 30 |      128 bytes each
//   bin              | header | block | block | ......... block |  + tail: | block | block |
//   chunk 512 KiB    4 special bins, 124 bins;   64 KiB: 1 special bin, 15 bins
//
//   bins.L1  block i of a bin lies at first + i * size of the bin's bytes, tail included; blocks
//       above 128 bytes use no tail.
//   bins.L2  no block starts at a multiple of 4 KiB: the header is there.
//   bins.L3  blocks of up to 256 bytes, and larger ones in bins of one page, lie at multiples of
//       their size.
//
// Source: Gelado and Garland 2019, section 4.2. Differs: a special bin serves 31 others, which fits
// chunks of any size; blocks above 128 bytes lie at multiples of their size; wide bins, which the
// paper proposes in section 5.3.
#pragma once

#include "../../../../platform/types.hpp"
#include "../../../../util/bits.hpp"
#include "config.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace bins {

inline constexpr u32 page_log2 = 12, page_bytes = 1u << page_log2;
inline constexpr u32 header_bytes = 128, tail_bytes = 128, tails_per_special = page_bytes / tail_bytes - 1;

/// A page of a chunk, and an offset into the bin that begins there. `none` as the page: no bin's
/// byte.
struct place {
  u32 page;
  u32 offset;

  static constexpr u32 none = ~0u;
};

/// A chunk of 2^log2 bytes.
struct chunk_shape {
  u32 log2;

  WARPHEAP_HOST_DEVICE constexpr u32 pages() const { return 1u << (log2 - page_log2); }
  WARPHEAP_HOST_DEVICE constexpr u32 specials() const {
    return (pages() + tails_per_special) / (tails_per_special + 1);
  }
  WARPHEAP_HOST_DEVICE constexpr u32 usable_pages() const { return pages() - specials(); }
  WARPHEAP_HOST_DEVICE constexpr u64 bytes() const { return u64{1} << log2; }

  /// Where in the chunk the tail of the bin at `page` lies.
  WARPHEAP_HOST_DEVICE constexpr u32 tail_offset(u32 page) const {
    u32 const tail = page - specials();
    return tail / tails_per_special * page_bytes + header_bytes + tail % tails_per_special * tail_bytes;
  }

  /// The page that an offset in the chunk belongs to: its own, or that of the bin whose tail it
  /// lies in (bins.L1).
  WARPHEAP_HOST_DEVICE constexpr place place_of(u32 offset) const {
    u32 const page = offset >> page_log2, inside = offset & (page_bytes - 1);
    if (page >= specials()) return {page, inside};
    u32 const owner = specials() + page * tails_per_special + (inside - header_bytes) / tail_bytes;
    if (inside < header_bytes || owner >= pages()) return {place::none, 0};
    return {owner, page_bytes + (inside - header_bytes) % tail_bytes};
  }
};

/// The size classes and their bins.
template <creation::ualloc_config Config>
struct layout {
  static_assert(
      is_valid(Config),
      "ualloc: chunks are 32 to 512 KiB; the smallest block has 8 or 16 bytes; the largest block has 1 KiB, or "
      "2 KiB in wide bins; at most 1,024 arenas; 1 to 16 bins at a time");

  static constexpr creation::ualloc_config config = Config;
  static constexpr u32 least_log2 = Config.least_bytes == 8 ? 3 : 4;
  static constexpr u32 largest_log2 = creation::largest_block_log2(Config);
  static constexpr u32 largest_bytes = 1u << largest_log2;
  static constexpr u32 classes = largest_log2 - least_log2 + 1;
  /// Blocks lie at multiples of their size up to this one (bins.L3), and at multiples of 128 above.
  static constexpr u32 self_aligned_up_to = Config.wide_bins ? 256 : largest_bytes;
  static constexpr u32 max_capacity = page_bytes / Config.least_bytes;

  static constexpr u32 no_block = ~0u;

  /// The class of a request of 1 to largest_bytes bytes.
  WARPHEAP_HOST_DEVICE static constexpr u32 class_of(u32 bytes) {
    return bytes <= Config.least_bytes ? 0 : log2_ceil(bytes) - least_log2;
  }
  WARPHEAP_HOST_DEVICE static constexpr u32 class_log2(u32 size_class) { return least_log2 + size_class; }
  WARPHEAP_HOST_DEVICE static constexpr u32 class_bytes(u32 size_class) { return 1u << class_log2(size_class); }

  /// Pages of a bin of the class.
  WARPHEAP_HOST_DEVICE static constexpr u32 pages(u32 size_class) {
    return is_wide(size_class) ? 1u << (class_log2(size_class) - 8) : 1;
  }
  /// Where its first block lies (bins.L2).
  WARPHEAP_HOST_DEVICE static constexpr u32 first_offset(u32 size_class) {
    return class_log2(size_class) <= 7 || is_wide(size_class) ? header_bytes : class_bytes(size_class);
  }
  WARPHEAP_HOST_DEVICE static constexpr bool uses_tail(u32 size_class) { return class_log2(size_class) <= 7; }

  /// Blocks of a bin.
  WARPHEAP_HOST_DEVICE static constexpr u32 capacity(u32 size_class) {
    u32 const end = pages(size_class) * page_bytes + (uses_tail(size_class) ? tail_bytes : 0);
    return (end - first_offset(size_class)) >> class_log2(size_class);
  }
  /// Bitmap words of a bin.
  WARPHEAP_HOST_DEVICE static constexpr u32 words(u32 size_class) { return (capacity(size_class) + 63) / 64; }
  /// Mask of the blocks that a bitmap word has.
  WARPHEAP_HOST_DEVICE static constexpr u64 valid_mask(u32 size_class, u32 word) {
    u32 const left = capacity(size_class) - word * 64;
    return low_mask(left < 64 ? left : 64);
  }

  /// Bins that a caller makes if it asks for `blocks` blocks, one a lane, and there are none: no
  /// more than lanes.
  WARPHEAP_HOST_DEVICE static constexpr u32 batch_for(u32 size_class, u32 blocks) {
    u32 const needed = bins_for(size_class, blocks);
    return blocks >= 16 && needed < Config.burst_bins ? Config.burst_bins : needed;
  }
  /// Bins that together have `blocks` blocks.
  WARPHEAP_HOST_DEVICE static constexpr u32 bins_for(u32 size_class, u32 blocks) {
    return (blocks + capacity(size_class) - 1) / capacity(size_class);
  }

  /// How far into its bin a block starts (bins.L1).
  WARPHEAP_HOST_DEVICE static constexpr u32 block_offset(u32 size_class, u32 index) {
    return first_offset(size_class) + (index << class_log2(size_class));
  }
  /// The block that starts at `offset` of a bin; no_block if none does.
  WARPHEAP_HOST_DEVICE static constexpr u32 block_at(u32 size_class, u32 offset) {
    u32 const from_first = offset - first_offset(size_class);
    bool const starts = offset >= first_offset(size_class) && (from_first & (class_bytes(size_class) - 1)) == 0;
    u32 const index = from_first >> class_log2(size_class);
    return starts && index < capacity(size_class) ? index : no_block;
  }

  /// chunk.place_of(offset), here so that tests can replace it.
  WARPHEAP_HOST_DEVICE static constexpr place place_of(chunk_shape chunk, u32 offset) { return chunk.place_of(offset); }
  /// Where in its chunk the byte at `offset` of the bin at `page` lies.
  WARPHEAP_HOST_DEVICE static constexpr u32 chunk_offset(chunk_shape chunk, u32 size_class, u32 page, u32 offset) {
    bool const in_tail = uses_tail(size_class) && offset >= page_bytes;
    return in_tail ? chunk.tail_offset(page) + offset - page_bytes : (page << page_log2) + offset;
  }

 private:
  WARPHEAP_HOST_DEVICE static constexpr bool is_wide(u32 size_class) {
    return Config.wide_bins && class_log2(size_class) > 8;
  }
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::bins
