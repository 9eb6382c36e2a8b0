// SPDX-License-Identifier: Apache-2.0
// override.hpp with an allocator of the program's own choice. What its units are compiled with, in
// place of override.hpp.
#pragma once

#include <warpheap/heap/override_allocator.hpp>

namespace override_test {

constexpr warpheap::creation::slab_bitmap_config small_slabs{.max_slab_log2 = 14};

}  // namespace override_test

template <>
struct warpheap::override_allocator<> {
  using type = warpheap::plain_allocator<warpheap::creation::slab_bitmap<override_test::small_slabs>>;
};

#include <warpheap/heap/override.hpp>
