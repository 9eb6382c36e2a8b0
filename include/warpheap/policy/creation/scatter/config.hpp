// What may be chosen about a scatter heap, and which choices make sense.
#pragma once

#include "../../../util/bits.hpp"

namespace warpheap::inline WARPHEAP_BACKEND {
namespace creation {

/// Tuning of scatter. Name the fields that differ from the defaults; a named constexpr value serves as template argument.
struct scatter_config {
  u32 page_bytes = 4096;          ///< a page holds chunks of one size; a power of two, 512 to 256 KiB
  u32 access_blocks = 8;          ///< the pool is cut into so many access blocks
  u32 open_blocks = 7;            ///< access blocks, from the front, over which requests are scattered at first
  u32 region_pages = 16;          ///< pages whose fill is counted together, 1 to 64
  u32 waste_factor = 2;           ///< a chunk may be so many times as large as what was asked for
  bool reset_freed_pages = true;  ///< a page whose last chunk is freed serves any size again
  u32 hash_size =
      0x85eb'ca6b;  ///< the scattering hash: what 16 bytes more of size add to the place, in 2^-32 of the range
  u32 hash_multiprocessor = 0xc2b2'ae35;  ///< what the next multiprocessor adds
  u32 hash_warp =
      0x9e37'79b9;  ///< what the next warp of the grid adds; the golden ratio keeps any number of them apart
};

/// Whether every part of the allocator can work with `config`; static_assert tells which rule is broken.
template <scatter_config Config>
struct checked_scatter_config {
  static_assert(is_power_of_two(Config.page_bytes) && Config.page_bytes >= 512 && Config.page_bytes <= 256 * 1024,
                "scatter: pages are a power of two of 512 bytes to 256 KiB");
  static_assert(Config.access_blocks >= 1 && Config.access_blocks <= 1024, "scatter: 1 to 1,024 access blocks");
  static_assert(Config.open_blocks >= 1 && Config.open_blocks <= Config.access_blocks,
                "scatter: at least one access block is open, and none that is not there");
  static_assert(Config.region_pages >= 1 && Config.region_pages <= 64, "scatter: regions are 1 to 64 pages");
  static_assert(Config.waste_factor >= 1 && Config.waste_factor <= 64, "scatter: waste factors are 1 to 64");
  static constexpr scatter_config value = Config;
};

}  // namespace creation
}  // namespace warpheap::inline WARPHEAP_BACKEND
