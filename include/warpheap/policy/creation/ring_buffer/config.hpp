// SPDX-License-Identifier: Apache-2.0
// The settings of a ring_buffer heap, and which are valid.
#pragma once

#include "../../../platform/types.hpp"
#include "../../config_text.hpp"
#include "../../defaults.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace creation {

/// Settings of ring_buffer.
struct ring_buffer_config {
  /// Bytes of every block, and of the largest request; a multiple of 16. PIConGPU has 8 KiB.
  size_t frame_bytes{WARPHEAP_RING_BUFFER_FRAME_BYTES};
};

#if !defined(__CUDACC_RTC__)
/// The settings in words, for info().
inline std::string describe(ring_buffer_config const& config) { return config_text("frame_bytes", config.frame_bytes); }
#endif

/// Whether the settings are within their limits.
WARPHEAP_HOST_DEVICE constexpr bool is_valid(ring_buffer_config const& config) {
  return config.frame_bytes >= 16 && config.frame_bytes % 16 == 0;
}

}}}  // namespace warpheap::WARPHEAP_BACKEND::creation
