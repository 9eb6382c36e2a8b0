// SPDX-License-Identifier: Apache-2.0
// Checks of what a caller or an invariant promises. A failed one ends the kernel and names the
// reason.
#pragma once

#include "simt.hpp"

/// Ends the kernel with `reason` (a string literal) unless `condition` holds. Compiled out under
/// NDEBUG.
#if defined(NDEBUG)
#define WARPHEAP_ASSERT(condition, reason) static_cast<void>(sizeof((condition) ? 1 : 0))
#else
#define WARPHEAP_ASSERT(condition, reason) ((condition) ? static_cast<void>(0) : ::warpheap::simt::trap(reason))
#endif
