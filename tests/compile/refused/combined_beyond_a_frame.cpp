// SPDX-License-Identifier: Apache-2.0
// refused: distribution_page_fits_creation, creation::ring_buffer<, warp_coalesce
#include <warpheap/all.hpp>

using namespace warpheap;
constexpr creation::ring_buffer_config small_frames{.frame_bytes = 1024};

using wrong = allocator<creation::ring_buffer<small_frames>, distribution::warp_coalesce, oom::return_null,
                        reserve_pool::device_memory, alignment::shrink<16>>;
wrong* never;
