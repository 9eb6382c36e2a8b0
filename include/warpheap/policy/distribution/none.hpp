// SPDX-License-Identifier: Apache-2.0
// Distribution that leaves every lane's request to itself.
// Source: Eckert 2014, section 4.3.4 ("NoOp").
#pragma once

#include "../../platform/simt.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace distribution {

/// Each lane asks the creation policy for exactly what it was asked for.
struct none {
  static constexpr char const* name = "none";
  /// A block goes to its caller as the creation policy made it.
  static constexpr bool hands_out_as_created = true;

  /// What this lane asks the creation policy for; 0 if another lane asks on its behalf.
  WARPHEAP_DEVICE size_t collect(size_t bytes) { return bytes; }

  /// This lane's part of what was created.
  WARPHEAP_DEVICE void* distribute(void* memory) { return memory; }

  /// What the creation policy gets back for what the caller frees; nullptr if nothing yet.
  WARPHEAP_DEVICE static void* release(void* memory) { return memory; }
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::distribution
