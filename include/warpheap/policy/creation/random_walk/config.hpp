// What may be chosen of a random_walk.
#pragma once

#include "../../../util/bits.hpp"

namespace warpheap::inline WARPHEAP_BACKEND {
namespace creation {

/// How a lane looks for a page.
enum class walk_kind : u32 {
  plain,         ///< RW: at one page after the other
  bitmap,        ///< RW-BM: at one word of the bitmap after the other
  collaborative  ///< CoRW: the lanes of a warp at a word each, and they share what they find
};

/// Tuning of random_walk.
struct random_walk_config {
  walk_kind kind = walk_kind::bitmap;
  /// What every block has, and the most that a request may ask for; a multiple of 16.
  size_t page_bytes = 8192;
  /// Pages of a bitmap word: a power of two up to 32, the paper's.
  u32 word_pages = 32;
  /// Steps of a walk after which the lane looks at every word in order; 0 is what suits the kind.
  u32 walk_steps = 0;
  /// Counts the steps of threads and of warps, for those who measure them.
  bool counts_steps = false;
};

/// Whether a configuration makes sense.
WARPHEAP_HOST_DEVICE constexpr bool is_sound(random_walk_config config) {
  return config.page_bytes >= 16 && config.page_bytes % 16 == 0 && is_power_of_two(config.word_pages) &&
         config.word_pages <= 32;
}

/// The name that an allocator of the kind goes by.
WARPHEAP_HOST_DEVICE constexpr char const* name_of(walk_kind kind) {
  return kind == walk_kind::plain ? "rw" : kind == walk_kind::bitmap ? "rw_bitmap" : "corw";
}

}  // namespace creation
}  // namespace warpheap::inline WARPHEAP_BACKEND
