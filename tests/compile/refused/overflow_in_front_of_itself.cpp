// refused: overflow_finds_heaps_told_apart, slab_bitmap, overflow_to
#include <warpheap/warpheap.hpp>

using namespace warpheap;
using wrong = allocator<creation::slab_bitmap<>, distribution::none, oom::overflow_to<default_allocator>,
                        reserve_pool::device_memory, alignment::shrink<16>>;
wrong* never;
