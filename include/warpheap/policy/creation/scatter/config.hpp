// SPDX-License-Identifier: Apache-2.0
// The configuration of a scatter heap, and whether one is valid.
#pragma once

#include "../../../util/bits.hpp"
#include "../../config_text.hpp"
#include "../../defaults.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace creation {

/// Settings of scatter. Name the fields that differ from the defaults; a named constexpr value
/// serves as template argument.
struct scatter_config {
  /// A page holds chunks of one size; a power of two, 512 to 256 KiB.
  u32 page_bytes{WARPHEAP_SCATTER_PAGE_BYTES};
  /// The pool is cut into this many access blocks.
  u32 access_blocks{WARPHEAP_SCATTER_ACCESS_BLOCKS};
  /// Access blocks, from the front, over which requests are scattered at first.
  u32 open_blocks{WARPHEAP_SCATTER_OPEN_BLOCKS};
  /// Pages whose fill is counted together, 1 to 64.
  u32 region_pages{WARPHEAP_SCATTER_REGION_PAGES};
  /// A chunk may be this many times as large as the request.
  u32 waste_factor{WARPHEAP_SCATTER_WASTE_FACTOR};
  /// A page whose last chunk is freed serves any size again.
  bool reset_freed_pages{WARPHEAP_SCATTER_RESET_FREED_PAGES};
  /// The scattering hash: the amount that 16 more bytes of size add to the place, in 2^-32 of the
  /// range.
  u32 hash_size{WARPHEAP_SCATTER_HASH_SIZE};
  /// The amount per multiprocessor.
  u32 hash_multiprocessor{WARPHEAP_SCATTER_HASH_MULTIPROCESSOR};
  /// The amount per warp of the grid; the golden ratio spreads any number of warps.
  u32 hash_warp{WARPHEAP_SCATTER_HASH_WARP};
};

/// Whether the settings are within their limits.
WARPHEAP_HOST_DEVICE constexpr bool is_valid(scatter_config const& config) {
  return is_power_of_two(config.page_bytes) && config.page_bytes >= 512 && config.page_bytes <= 256 * 1024 &&
         config.access_blocks >= 1 && config.access_blocks <= 1024 && config.open_blocks >= 1 &&
         config.open_blocks <= config.access_blocks && config.region_pages >= 1 && config.region_pages <= 64 &&
         config.waste_factor >= 1 && config.waste_factor <= 64;
}

#if !defined(__CUDACC_RTC__)
/// The settings in words, for info().
inline std::string describe(scatter_config const& config) {
  return config_text("page_bytes", config.page_bytes, "access_blocks", config.access_blocks, "open_blocks",
                     config.open_blocks, "region_pages", config.region_pages, "waste_factor", config.waste_factor,
                     "reset_freed_pages", config.reset_freed_pages, "hash_size", config.hash_size,
                     "hash_multiprocessor", config.hash_multiprocessor, "hash_warp", config.hash_warp);
}
#endif

}}}  // namespace warpheap::WARPHEAP_BACKEND::creation
