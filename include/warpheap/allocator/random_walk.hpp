// SPDX-License-Identifier: Apache-2.0
// Pages, found by random walks.
#pragma once

#include "../heap/default_heap.hpp"
#include "../policy/creation/random_walk.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// Walks over pages.
inline constexpr creation::random_walk_config walk_by_page{.kind = creation::walk_kind::plain};
/// Walks of the lanes of a warp together.
inline constexpr creation::random_walk_config walk_together{.kind = creation::walk_kind::collaborative};
/// Pages of 8 KiB, found by random walks over pages.
using rw_allocator = plain_allocator<creation::random_walk<walk_by_page>>;
/// Pages of 8 KiB, found by random walks over words of a bitmap.
using rw_bitmap_allocator = plain_allocator<creation::random_walk<>>;
/// Pages of 8 KiB, found by walks of the lanes of a warp together.
using corw_allocator = plain_allocator<creation::random_walk<walk_together>>;

#if !defined(__CUDACC_RTC__)
/// Pages of 8 KiB, found by random walks over pages.
using rw_heap = basic_heap<rw_allocator>;
/// Pages of 8 KiB, found by random walks over words of a bitmap.
using rw_bitmap_heap = basic_heap<rw_bitmap_allocator>;
/// Pages of 8 KiB, found by walks of the lanes of a warp together.
using corw_heap = basic_heap<corw_allocator>;
#endif

}}  // namespace warpheap::WARPHEAP_BACKEND
