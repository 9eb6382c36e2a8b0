// SPDX-License-Identifier: Apache-2.0
// All heaps that have names of their own: the default one, and one for each creation policy.
#pragma once

#include "../policy/alignment/shrink.hpp"
#include "../policy/creation/halloc.hpp"
#include "../policy/creation/queue.hpp"
#include "../policy/creation/random_walk.hpp"
#include "../policy/creation/ring_buffer.hpp"
#include "../policy/creation/rw_malloc.hpp"
#include "../policy/creation/scatter.hpp"
#include "../policy/creation/slab_bitmap.hpp"
#include "../policy/creation/tbuddy.hpp"
#include "../policy/creation/throughput.hpp"
#include "../policy/creation/toolkit.hpp"
#include "../policy/creation/ualloc.hpp"
#include "../policy/distribution/none.hpp"
#include "../policy/oom/return_null.hpp"
#include "../policy/reserve_pool/device_memory.hpp"
#include "../policy/reserve_pool/toolkit_limit.hpp"
#include "allocator.hpp"
#include "heap.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

#if defined(__CUDACC_RTC__)
namespace reserve_pool {
class device_memory;
class external;
class host_memory;
class toolkit_limit;
class zeroed_memory;
}  // namespace reserve_pool
#endif

/// A creation policy with the plainest other four.
template <class Creation>
using plain_allocator =
    allocator<Creation, distribution::none, oom::return_null, reserve_pool::device_memory, alignment::shrink<16>>;

/// A class of its own, so that the names of kernels, in profiles and in reports of sanitizers, stay
/// short.
struct default_allocator : plain_allocator<creation::slab_bitmap<>> {
  using plain_allocator<creation::slab_bitmap<>>::plain_allocator;
};

/// The default allocator for programs that rely on what CUDA's heap happens to do: memory is zero
/// until a block first uses it, and no two blocks share a sector of 32 bytes, the smallest unit
/// that a cache holds.
using forgiving_allocator = allocator<creation::slab_bitmap<>, distribution::none, oom::return_null,
                                      reserve_pool::zeroed_memory, alignment::shrink<32>>;

/// CUDA's own allocator, or the C library's on the host backend.
using toolkit_allocator = allocator<creation::toolkit, distribution::none, oom::return_null,
                                    reserve_pool::toolkit_limit, alignment::shrink<16>>;
/// For policies whose chunks of 24 bytes are aligned only to 8.
template <class Creation>
using finely_aligned_allocator =
    allocator<Creation, distribution::none, oom::return_null, reserve_pool::device_memory, alignment::shrink<8>>;
/// Slabs of chunks, found by a hash of a counter; TBuddy above 3 KiB.
using halloc_allocator = finely_aligned_allocator<creation::halloc<>>;
/// Frames of one size in a ring.
using ring_buffer_allocator = plain_allocator<creation::ring_buffer<>>;
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
/// Runs of 16-byte units, found by random walks.
using rw_malloc_allocator = plain_allocator<creation::rw_malloc<>>;
/// Chunks of pages of one size, and a queue of chunks a size.
inline constexpr creation::queue_config queues_of_chunks{.element = creation::queue_element::chunk};
/// Queues that lie in chunks themselves.
inline constexpr creation::queue_config virtual_queues{.form = creation::queue_form::virtual_array};
/// Queues of chunks that lie in chunks themselves.
inline constexpr creation::queue_config virtual_queues_of_chunks{.element = creation::queue_element::chunk,
                                                                 .form = creation::queue_form::virtual_array};
/// Powers of two of up to 8 KiB, from queues of free pages.
using queue_pages_allocator = plain_allocator<creation::queue<>>;
/// Powers of two of up to 8 KiB, from queues of chunks with free pages.
using queue_chunks_allocator = plain_allocator<creation::queue<queues_of_chunks>>;
/// Powers of two of up to 8 KiB, from virtual queues of free pages.
using queue_pages_virtual_allocator = plain_allocator<creation::queue<virtual_queues>>;
/// Powers of two of up to 8 KiB, from virtual queues of chunks with free pages.
using queue_chunks_virtual_allocator = plain_allocator<creation::queue<virtual_queues_of_chunks>>;
/// ScatterAlloc.
using scatter_allocator = plain_allocator<creation::scatter<>>;
/// Powers of two of 4 KiB pages, split and merged.
using tbuddy_allocator = plain_allocator<creation::tbuddy<>>;
/// UAlloc's bins alone.
using ualloc_allocator = plain_allocator<creation::ualloc<>>;
/// UAlloc and TBuddy as one.
using throughput_allocator = plain_allocator<creation::throughput<>>;

/// The default heap as a kernel takes it: 16 bytes, trivially copyable.
using heap_ref = default_allocator;
static_assert(sizeof(heap_ref) == 16);

#if !defined(__CUDACC_RTC__)
/// The default heap over device memory.
using heap = basic_heap<default_allocator>;
/// ScatterAlloc behind the same interface.
using scatter_heap = basic_heap<scatter_allocator>;
/// The toolkit's own device-side malloc behind the same interface.
using toolkit_heap = basic_heap<toolkit_allocator>;
/// Halloc: slabs of chunks, found by a hash of a counter.
using halloc_heap = basic_heap<halloc_allocator>;
/// Frames of 8 KiB behind a push and a pop index.
using ring_buffer_heap = basic_heap<ring_buffer_allocator>;
/// Pages of 8 KiB, found by random walks over pages.
using rw_heap = basic_heap<rw_allocator>;
/// Pages of 8 KiB, found by random walks over words of a bitmap.
using rw_bitmap_heap = basic_heap<rw_bitmap_allocator>;
/// Pages of 8 KiB, found by walks of the lanes of a warp together.
using corw_heap = basic_heap<corw_allocator>;
/// Runs of 16-byte units, found by random walks.
using rw_malloc_heap = basic_heap<rw_malloc_allocator>;
/// Powers of two of up to 8 KiB, from queues of free pages.
using queue_pages_heap = basic_heap<queue_pages_allocator>;
/// Powers of two of up to 8 KiB, from queues of chunks with free pages.
using queue_chunks_heap = basic_heap<queue_chunks_allocator>;
/// Powers of two of up to 8 KiB, from virtual queues of free pages.
using queue_pages_virtual_heap = basic_heap<queue_pages_virtual_allocator>;
/// Powers of two of up to 8 KiB, from virtual queues of chunks with free pages.
using queue_chunks_virtual_heap = basic_heap<queue_chunks_virtual_allocator>;
/// Powers of two of 4 KiB pages, split and merged.
using tbuddy_heap = basic_heap<tbuddy_allocator>;
/// UAlloc's bins alone: blocks of up to 1 KiB.
using ualloc_heap = basic_heap<ualloc_allocator>;
/// UAlloc and TBuddy as one allocator.
using throughput_heap = basic_heap<throughput_allocator>;
#endif

}}  // namespace warpheap::WARPHEAP_BACKEND
