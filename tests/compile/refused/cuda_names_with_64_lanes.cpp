// SPDX-License-Identifier: Apache-2.0
// refused: CUDA, 64 lanes
#define WARPHEAP_WARP_LANES 64
#include <warpheap/platform/cuda_names.hpp>
