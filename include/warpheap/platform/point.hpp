// SPDX-License-Identifier: Apache-2.0
// Named places of a protocol, for schedules of the host backend that prefer to change lanes there.
#pragma once

#include "simt.hpp"

/// A place with a name (a string literal, such as "settle.before_toggle") between two steps of a
/// protocol. Schedules may hold a lane back here for long. Nothing on a GPU, and nothing under
/// NDEBUG.
#if defined(__CUDACC__) || defined(WARPHEAP_READER) || defined(NDEBUG)
#define WARPHEAP_POINT(name) static_cast<void>(0)
#else
#define WARPHEAP_POINT(name) ::warpheap::host::detail::named_point(name)
#endif
