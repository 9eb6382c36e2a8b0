// SPDX-License-Identifier: Apache-2.0
// Yield points of a protocol, at which schedules of the host backend prefer to change lanes.
#pragma once

#include "simt.hpp"

/// A yield point between two steps of a protocol; its name is a string literal, such as
/// "settle.before_toggle". Schedules may hold a lane back here for long. Nothing on a GPU, and
/// nothing under NDEBUG.
#if defined(__CUDACC__) || defined(WARPHEAP_READER) || defined(NDEBUG)
#define WARPHEAP_POINT(name) static_cast<void>(0)
#else
#define WARPHEAP_POINT(name) ::warpheap::host::detail::yield_point(name)
#endif
