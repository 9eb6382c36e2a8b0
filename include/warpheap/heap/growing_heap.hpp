// The default heap over a pool that grows. A program includes it by name, because on CUDA it brings
// the driver's header.
//
//   warpheap::growing_heap heap{warpheap::growth{.initial = 64 << 20, .limit = size_t{8} << 30}};
//   build<<<grid, block>>>(heap.ref());
//   heap.grow(size_t{1} << 30);    // between kernels, or beside them
#pragma once

#include "../policy/alignment/shrink.hpp"
#include "../policy/creation/slab_bitmap.hpp"
#include "../policy/distribution/none.hpp"
#include "../policy/oom/return_null.hpp"
#if !defined(__CUDACC_RTC__)
#include "../policy/reserve_pool/growing.hpp"
#endif
#include "allocator.hpp"
#include "heap.hpp"

namespace warpheap::inline WARPHEAP_BACKEND {

#if defined(__CUDACC_RTC__)
namespace reserve_pool {
class growing;
}
#endif

/// What kernels take: default_allocator, 16 bytes, with another place that its pool comes from.
struct growing_allocator : allocator<creation::slab_bitmap<>, distribution::none, oom::return_null,
                                     reserve_pool::growing, alignment::shrink<16>> {
  using allocator<creation::slab_bitmap<>, distribution::none, oom::return_null, reserve_pool::growing,
                  alignment::shrink<16>>::allocator;
};

#if !defined(__CUDACC_RTC__)
using growing_heap = basic_heap<growing_allocator>;
#endif

}  // namespace warpheap::inline WARPHEAP_BACKEND
