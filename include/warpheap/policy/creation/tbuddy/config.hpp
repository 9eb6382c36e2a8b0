// SPDX-License-Identifier: Apache-2.0
// The settings of a tbuddy heap, and which are valid.
#pragma once

#include "../../../util/bits.hpp"
#include "../../config_text.hpp"
#include "../../defaults.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace creation {

/// Settings of tbuddy.
struct tbuddy_config {
  /// The smallest block; a power of two from 16 bytes to 1 MiB. There are at most 2^30 in a pool.
  size_t page_bytes{WARPHEAP_TBUDDY_PAGE_BYTES};
  /// Lanes of a warp that request the same order share larger blocks, and lanes that free together
  /// merge theirs first. false: each lane calls for itself, as in the paper's section 4.1.
  bool shares_requests{WARPHEAP_TBUDDY_SHARES_REQUESTS};
};

#if !defined(__CUDACC_RTC__)
/// The settings in words, for info().
inline std::string describe(tbuddy_config const& config) {
  return config_text("page_bytes", config.page_bytes, "shares_requests", config.shares_requests);
}
#endif

/// Whether the settings are within their limits.
WARPHEAP_HOST_DEVICE constexpr bool is_valid(tbuddy_config const& config) {
  return is_power_of_two(config.page_bytes) && config.page_bytes >= 16 && config.page_bytes <= size_t{1} << 20;
}

}}}  // namespace warpheap::WARPHEAP_BACKEND::creation
