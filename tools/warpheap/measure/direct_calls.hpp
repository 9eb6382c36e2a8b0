// SPDX-License-Identifier: Apache-2.0
// An allocator without its policies: the difference is the cost of the layer of policies.
#pragma once

#include "measure.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

/// The creation policy alone, by the names that kernels call.
template <class Allocator>
struct direct_calls {
  Allocator heap;

  WARPHEAP_DEVICE void* malloc(size_t bytes) const { return heap.creation().create(bytes); }
  WARPHEAP_DEVICE void free(void* memory) const { heap.creation().destroy(memory); }
};

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
