// SPDX-License-Identifier: Apache-2.0
// The result of an insertion into a container that holds each key once.
#pragma once

#include "../platform/simt.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// What an insertion did.
enum class insert_result {
  inserted,  ///< the key was new
  exists,    ///< the key was there already
  refused,   ///< the heap had no memory; the container is unchanged
};

}}  // namespace warpheap::WARPHEAP_BACKEND
