// SPDX-License-Identifier: Apache-2.0
// refused: distribution_page_fits_creation, creation::scatter<, warp_coalesce
#include <warpheap/all.hpp>

using namespace warpheap;
// Combined requests of up to 4 KiB: two pages each, which scatter looks for elsewhere.
constexpr creation::scatter_config small_pages{.page_bytes = 2048};

using wrong = allocator<creation::scatter<small_pages>, distribution::warp_coalesce, oom::return_null,
                        reserve_pool::device_memory, alignment::shrink<16>>;
wrong* never;
