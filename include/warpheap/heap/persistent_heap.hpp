// SPDX-License-Identifier: Apache-2.0
// The default heap in a pool whose address the program chooses, so that one process can save it and
// another restore it. Programs include this header by name, because on CUDA it includes the
// driver's.
//
//   persistent_heap heap{1_GiB};
//   build<<<grid, block>>>(heap.ref(), first);
//   save(heap, first).write("lists.image");
//
//   auto const image = heap_image::read("lists.image");  // in another process
//   persistent_heap heap = restore<persistent_heap>(image);
//   use<<<grid, block>>>(heap.ref(), static_cast<node*>(image.root()));
#pragma once

#include "default_heap.hpp"
#if !defined(__CUDACC_RTC__)
#include "../policy/reserve_pool/at_address.hpp"
#include "checkpoint.hpp"
#endif

namespace warpheap { inline namespace WARPHEAP_BACKEND {

#if defined(__CUDACC_RTC__)
namespace reserve_pool {
class at_address;
}  // namespace reserve_pool
#endif

/// A creation policy with the simplest other policies, over a pool at a chosen address.
template <class Creation>
using persistent_allocator_of =
    allocator<Creation, distribution::none, oom::return_null, reserve_pool::at_address, alignment::shrink<16>>;

/// The reference for kernels, 16 bytes.
struct persistent_allocator : persistent_allocator_of<creation::slab_bitmap<>> {
  using persistent_allocator_of<creation::slab_bitmap<>>::persistent_allocator_of;
};

#if !defined(__CUDACC_RTC__)
/// The default heap at a chosen address: `persistent_heap{bytes}`, or `persistent_heap{bytes,
/// reserve_pool::at_address{address}}`.
using persistent_heap = basic_heap<persistent_allocator>;
#endif

}}  // namespace warpheap::WARPHEAP_BACKEND
