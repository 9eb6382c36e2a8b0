// SPDX-License-Identifier: Apache-2.0
// A second translation unit whose device code has its malloc from override.hpp.
#pragma once

#include "warpheap/platform/simt.hpp"

namespace override_test {

/// Every thread's block of `bytes` bytes in `blocks`, with its number in it. Does not wait.
void allocate_in_other_unit(warpheap::launch_shape shape, void** blocks, warpheap::size_t bytes);

/// Frees every thread's block of `blocks`. Does not wait.
void free_in_other_unit(warpheap::launch_shape shape, void* const* blocks);

}  // namespace override_test
