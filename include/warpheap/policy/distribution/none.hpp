// SPDX-License-Identifier: Apache-2.0
// Distribution that leaves every lane its own request. Source: Eckert 2014, section 4.3.4 ("NoOp").
#pragma once

#include "../../platform/simt.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace distribution {

/// Each lane passes its caller's request to the creation policy unchanged.
struct none {
  static constexpr char const* name = "none";
  /// A block goes to its caller as the creation policy made it.
  static constexpr bool hands_out_as_created = true;

  /// The bytes that this lane requests from the creation policy; 0 if another lane requests on its
  /// behalf.
  WARPHEAP_DEVICE size_t collect(size_t bytes) { return bytes; }

  /// This lane's part of the created block.
  WARPHEAP_DEVICE void* distribute(void* memory) { return memory; }

  /// The block to destroy for the address that the caller frees; nullptr if none yet.
  WARPHEAP_DEVICE static void* release(void* memory) { return memory; }
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::distribution
