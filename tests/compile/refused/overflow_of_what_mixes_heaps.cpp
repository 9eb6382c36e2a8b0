// SPDX-License-Identifier: Apache-2.0
// refused: overflow_supports_mixed_heaps, mixes_heaps, overflow_to
#include <warpheap/warpheap.hpp>

using namespace warpheap;
struct mixes_heaps : creation::slab_bitmap<> {
  static constexpr bool supports_mixed_heaps = false;
};
using wrong = allocator<mixes_heaps, distribution::none, oom::overflow_to<default_allocator>,
                        reserve_pool::device_memory, alignment::shrink<16>>;
wrong* never;
