// SPDX-License-Identifier: Apache-2.0
// The configuration of a random_walk, and whether one is valid.
#pragma once

#include "../../../util/bits.hpp"
#include "../../config_text.hpp"
#include "../../defaults.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace creation {

/// How pages are looked for.
enum class walk_kind : u32 {
  plain,         ///< RW: at one page after the other
  bitmap,        ///< RW-BM: at one word of the bitmap after the other
  collaborative  ///< CoRW: the lanes of a warp at a word each, and they share what they find
};

/// Settings of random_walk.
struct random_walk_config {
  /// How pages are looked for.
  walk_kind kind{walk_kind::WARPHEAP_RANDOM_WALK_KIND};
  /// Bytes of every block, and of the largest request; a multiple of 16.
  size_t page_bytes{WARPHEAP_RANDOM_WALK_PAGE_BYTES};
  /// Pages of a bitmap word, a power of two: up to 32, as in the paper's experiments; or 64, unless
  /// the kind is collaborative, whose words need a bit for their lock.
  u32 word_pages{WARPHEAP_RANDOM_WALK_WORD_PAGES};
  /// Steps without a page after which a lane looks at every word in order; 0: a value that suits
  /// the kind.
  u32 walk_steps{WARPHEAP_RANDOM_WALK_WALK_STEPS};
  /// Whether the steps of threads and of warps are counted, for measurements.
  bool counts_steps{WARPHEAP_RANDOM_WALK_COUNTS_STEPS};
};

/// Whether the settings are within their limits.
WARPHEAP_HOST_DEVICE constexpr bool is_valid(random_walk_config const& config) {
  return config.page_bytes >= 16 && config.page_bytes % 16 == 0 && is_power_of_two(config.word_pages) &&
         config.word_pages <= (config.kind == walk_kind::collaborative ? 32 : 64);
}

/// The name of an allocator of this kind.
WARPHEAP_HOST_DEVICE constexpr char const* name_of(walk_kind kind) {
  if (kind == walk_kind::plain) return "rw";
  return kind == walk_kind::bitmap ? "rw_bitmap" : "corw";
}

#if !defined(__CUDACC_RTC__)
/// The settings in words, for info().
inline std::string describe(random_walk_config const& config) {
  return config_text("kind", name_of(config.kind), "page_bytes", config.page_bytes, "word_pages", config.word_pages,
                     "walk_steps", config.walk_steps, "counts_steps", config.counts_steps);
}
#endif

}}}  // namespace warpheap::WARPHEAP_BACKEND::creation
