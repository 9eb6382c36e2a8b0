// SPDX-License-Identifier: Apache-2.0
// override.hpp with forgiving_allocator behind the names. For programs that run on CUDA's heap but
// fail on ours because they read memory before they write it, or read without a fence what other
// threads write. docs/guide/drop_in_replacement.md says what it promises.
#pragma once

#include "override_allocator.hpp"

template <>
struct warpheap::override_allocator<> {
  using type = warpheap::forgiving_allocator;
};

#include "override.hpp"
