// SPDX-License-Identifier: Apache-2.0
// refused: distribution_page_fits_creation, creation::random_walk<, warp_coalesce
#include <warpheap/all.hpp>

using namespace warpheap;
constexpr creation::random_walk_config small_pages{.page_bytes = 256};

using wrong = allocator<creation::random_walk<small_pages>, distribution::warp_coalesce, oom::return_null,
                        reserve_pool::device_memory, alignment::shrink<16>>;
wrong* never;
