// SPDX-License-Identifier: Apache-2.0
// refused: distribution_policy, forgetful
#include <warpheap/warpheap.hpp>

using namespace warpheap;

// Hands out something else than was created, and does not say what to destroy.
struct forgetful {
  WARPHEAP_DEVICE size_t collect(size_t bytes) { return bytes + 16; }
  WARPHEAP_DEVICE void* distribute(void* memory) { return static_cast<u8*>(memory) + 16; }
};

using wrong =
    allocator<creation::slab_bitmap<>, forgetful, oom::return_null, reserve_pool::device_memory, alignment::shrink<16>>;
wrong* never;
