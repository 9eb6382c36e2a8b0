// SPDX-License-Identifier: Apache-2.0
// refused: mutually_compatible, picky, trap
#include <warpheap/warpheap.hpp>

using namespace warpheap;

struct picky : creation::slab_bitmap<> {
  template <class Other>
  static constexpr bool goes_with = !same_type<Other, oom::trap>;
};

using wrong = allocator<picky, distribution::none, oom::trap, reserve_pool::device_memory, alignment::shrink<16>>;
wrong* never;
