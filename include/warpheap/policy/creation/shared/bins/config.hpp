// SPDX-License-Identifier: Apache-2.0
// The settings of bins, for ualloc and throughput, and which are valid.
#pragma once

#include "../../../../util/bits.hpp"
#include "../../../config_text.hpp"
#include "../../../defaults.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace creation {

/// Settings of ualloc and throughput. Name the fields that differ from the defaults.
struct ualloc_config {
  /// Largest chunk, log2 of bytes, 15 to 19; small pools have smaller ones. The paper's are 2^19.
  u32 chunk_log2{WARPHEAP_UALLOC_CHUNK_LOG2};
  /// The smallest block, 8 or 16 bytes. The paper's has 8; results are then aligned to 8 alone.
  u32 least_bytes{WARPHEAP_UALLOC_LEAST_BYTES};
  /// Bins of 2, 4 and 8 pages for blocks of 512, 1024 and 2048 bytes, 15 of which fit in each. A
  /// sixteenth is lost where the paper's bins lose an eighth and a quarter, and a request of 2 KiB
  /// takes no more. Blocks above 256 bytes are then aligned to 128.
  bool wide_bins{WARPHEAP_UALLOC_WIDE_BINS};
  /// Largest block, log2 of bytes; 0: 11 with wide bins, 10 without. `throughput` takes larger
  /// blocks from TBuddy. If wide bins end at 10, TBuddy's pages have 2 KiB: a bin loses a block to
  /// its header, a page loses nothing.
  u32 largest_log2{WARPHEAP_UALLOC_LARGEST_LOG2};
  /// Arenas, at most 1,024; 0: one per multiprocessor. A pool has at most half as many arenas as
  /// chunks.
  u32 arenas{WARPHEAP_UALLOC_ARENAS};
  /// Free blocks of each class that an arena keeps, in bins' worth. A bin that becomes empty beyond
  /// these goes back to its chunk.
  u32 idle_bins{WARPHEAP_UALLOC_IDLE_BINS};
  /// Bins that half a warp or more makes at a time when it needs one. Bursts then lock the chunks'
  /// mutex that many times less often.
  u32 burst_bins{WARPHEAP_UALLOC_BURST_BINS};
  /// Lanes of a warp that request the same class make one request, and wait by additions. false:
  /// each lane waits for itself by compare-and-swap, makes a bin of its own, and clears the headers
  /// of a new chunk alone, as in the paper's section 4.2. TBuddy below has the same setting.
  bool shares_requests{WARPHEAP_UALLOC_SHARES_REQUESTS};
};

#if !defined(__CUDACC_RTC__)
/// For info().
inline std::string describe(ualloc_config const& config) {
  return config_text("chunk_log2", config.chunk_log2, "least_bytes", config.least_bytes, "wide_bins", config.wide_bins,
                     "largest_log2", config.largest_log2, "arenas", config.arenas, "idle_bins", config.idle_bins,
                     "burst_bins", config.burst_bins, "shares_requests", config.shares_requests);
}
#endif

/// The largest block of a configuration, log2 of bytes.
WARPHEAP_HOST_DEVICE constexpr u32 largest_block_log2(ualloc_config const& config) {
  if (config.largest_log2 != 0) return config.largest_log2;
  return config.wide_bins ? 11 : 10;
}

/// Whether the bins can work with a configuration.
WARPHEAP_HOST_DEVICE constexpr bool is_valid(ualloc_config const& config) {
  bool const chunks = config.chunk_log2 >= 15 && config.chunk_log2 <= 19;
  bool const least = config.least_bytes == 8 || config.least_bytes == 16;
  bool const largest = largest_block_log2(config) == 10 || (largest_block_log2(config) == 11 && config.wide_bins);
  return chunks && least && largest && config.arenas <= 1024 && config.burst_bins >= 1 && config.burst_bins <= 16;
}

}}}  // namespace warpheap::WARPHEAP_BACKEND::creation
