// SPDX-License-Identifier: Apache-2.0
// The configuration of a rw_malloc, and whether one is valid.
#pragma once

#include "../../../util/bits.hpp"
#include "../../config_text.hpp"
#include "../../defaults.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace creation {

/// Settings of rw_malloc.
struct rw_malloc_config {
  /// Sizes are rounded up to multiples of this; a power of two from 16 to 4,096.
  size_t unit_bytes{WARPHEAP_RW_MALLOC_UNIT_BYTES};
  /// Requests of a warp that differ and have at most this many units are combined into one.
  u32 aggregated_units{WARPHEAP_RW_MALLOC_AGGREGATED_UNITS};
  /// Words of a window that each lane looks at: 1, 2 or 4. With 4 a full warp's window has the
  /// paper's 4,096 bits, so that long blocks need fewer windows, but short ones lock more words.
  u32 words_per_lane{WARPHEAP_RW_MALLOC_WORDS_PER_LANE};
  /// A walk ends after this many windows in a row without a block for any lane; then a search looks
  /// at everything in order.
  u32 walk_windows{WARPHEAP_RW_MALLOC_WALK_WINDOWS};
  /// Words of a group, for which the lengths of its runs are noted; a power of two up to 128.
  u32 group_words{WARPHEAP_RW_MALLOC_GROUP_WORDS};
  /// Whether the steps of threads and of warps are counted, for measurements.
  bool counts_steps{WARPHEAP_RW_MALLOC_COUNTS_STEPS};
};

/// Whether the settings are within their limits.
WARPHEAP_HOST_DEVICE constexpr bool is_valid(rw_malloc_config const& config) {
  return is_power_of_two(config.unit_bytes) && config.unit_bytes >= 16 && config.unit_bytes <= 4096 &&
         config.aggregated_units <= 32 && is_power_of_two(config.words_per_lane) && config.words_per_lane <= 4 &&
         is_power_of_two(config.group_words) && config.group_words <= 128;
}

#if !defined(__CUDACC_RTC__)
/// The settings in words, for info().
inline std::string describe(rw_malloc_config const& config) {
  return config_text("unit_bytes", config.unit_bytes, "aggregated_units", config.aggregated_units, "words_per_lane",
                     config.words_per_lane, "walk_windows", config.walk_windows, "group_words", config.group_words,
                     "counts_steps", config.counts_steps);
}
#endif

}}}  // namespace warpheap::WARPHEAP_BACKEND::creation
