// What may be chosen of a rw_malloc.
#pragma once

#include "../../../util/bits.hpp"

namespace warpheap::inline WARPHEAP_BACKEND {
namespace creation {

/// Tuning of rw_malloc.
struct rw_malloc_config {
  /// What sizes are rounded up to; a power of two from 16 to 4,096.
  size_t unit_bytes = 16;
  /// Requests of up to so many units that differ are made one for the lanes of a warp.
  u32 aggregated_units = 8;
  /// Windows in a row that have nothing for anybody, after which a walk ends and everything is looked at in order.
  u32 walk_windows = 32;
  /// Words of a group, of whose runs it is noted how long they are; a power of two up to 128.
  u32 group_words = 128;
  /// Counts the steps of threads and of warps, for those who measure them.
  bool counts_steps = false;
};

/// Whether a configuration makes sense.
WARPHEAP_HOST_DEVICE constexpr bool is_sound(rw_malloc_config config) {
  return is_power_of_two(config.unit_bytes) && config.unit_bytes >= 16 && config.unit_bytes <= 4096 &&
         config.aggregated_units <= 32 && is_power_of_two(config.group_words) && config.group_words <= 128;
}

}  // namespace creation
}  // namespace warpheap::inline WARPHEAP_BACKEND
