// override.hpp, in its place, with forgiving_allocator behind the names: for programs that run on
// CUDA's heap and not on ours because they read memory before they write it, or read what other
// threads write without a fence. docs/guide/drop_in_replacement.md says what it promises.
#pragma once

#include "override_allocator.hpp"

template <>
struct warpheap::override_allocator<> {
  using type = warpheap::forgiving_allocator;
};

#include "override.hpp"
