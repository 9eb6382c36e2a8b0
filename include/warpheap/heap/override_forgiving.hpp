// SPDX-License-Identifier: Apache-2.0
// A replacement for override.hpp with forgiving_allocator behind the names. For programs that run
// on CUDA's heap and fail on ours because they read memory before they write it, or read what other
// threads write without a fence. docs/guide/drop_in_replacement.md says what it promises.
#pragma once

#include "override_allocator.hpp"

template <>
struct warpheap::override_allocator<> {
  using type = warpheap::forgiving_allocator;
};

#include "override.hpp"
