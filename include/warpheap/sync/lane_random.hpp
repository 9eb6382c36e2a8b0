// SPDX-License-Identifier: Apache-2.0
// Where a lane begins to look: random bits that differ between lanes that run at one moment, or all
// of them would come to the same place at once.
#pragma once

#include "../platform/simt.hpp"
#include "../util/random.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// Bits that differ between lanes that run at one moment, and from moment to moment. Any lane.
WARPHEAP_DEVICE inline u32 lane_random_bits() {
  return mix32(static_cast<u32>(simt::clock()) + 0x9e37'79b9u * (warp_lanes * simt::sm_id() + simt::lane_id()));
}

/// A sequence that is this thread's own. Any lane.
WARPHEAP_DEVICE inline random_sequence lane_random_sequence() {
  return random_sequence{simt::clock() + 0x9e37'79b9'7f4a'7c15u * (global_thread_index() + 1)};
}

}}  // namespace warpheap::WARPHEAP_BACKEND
