// SPDX-License-Identifier: Apache-2.0
// The settings of slab_bitmap.
#pragma once

#include "../../../platform/types.hpp"
#include "../../config_text.hpp"
#include "../../defaults.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace creation {

/// Settings of slab_bitmap.
struct slab_bitmap_config {
  /// log2 of the largest slab's bytes, 14 to 21. 19 is faster in bursts, six times slower in churn.
  u32 max_slab_log2{WARPHEAP_SLAB_BITMAP_MAX_SLAB_LOG2};
};

/// Whether the settings are within their limits.
WARPHEAP_HOST_DEVICE constexpr bool is_valid(slab_bitmap_config const& config) {
  return config.max_slab_log2 >= 14 && config.max_slab_log2 <= 21;
}

#if !defined(__CUDACC_RTC__)
/// The settings in words.
inline std::string describe(slab_bitmap_config const& config) {
  return config_text("max_slab_log2", config.max_slab_log2);
}
#endif

}}}  // namespace warpheap::WARPHEAP_BACKEND::creation
