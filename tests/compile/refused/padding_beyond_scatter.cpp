// refused: alignment_serves_creation, creation::scatter<, alignment::shrink<128
#include <warpheap/warpheap.hpp>

using namespace warpheap;
// A request may get a chunk up to twice as large, of 144 bytes in place of 128, say.
using wrong = allocator<creation::scatter<>, distribution::none, oom::return_null, reserve_pool::device_memory,
                        alignment::shrink<128>>;
wrong* never;
