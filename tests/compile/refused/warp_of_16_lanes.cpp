// SPDX-License-Identifier: Apache-2.0
// refused: WARPHEAP_WARP_LANES, the lanes of a warp, is 32 or 64
#define WARPHEAP_WARP_LANES 16
#include <warpheap/platform/simt.hpp>
