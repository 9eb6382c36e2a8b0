// Distribution that leaves every lane's request to itself.
#pragma once

#include "../../platform/simt.hpp"

namespace warpheap::inline WARPHEAP_BACKEND {
namespace distribution {

/// Each lane asks the creation policy for exactly what it was asked for.
struct none {
  static constexpr char const* name = "none";

  /// What this lane asks the creation policy for; 0 if another lane asks on its behalf.
  WARPHEAP_DEVICE size_t collect(size_t bytes) { return bytes; }

  /// This lane's part of what was created.
  WARPHEAP_DEVICE void* distribute(void* memory) { return memory; }
};

}  // namespace distribution
}  // namespace warpheap::inline WARPHEAP_BACKEND
