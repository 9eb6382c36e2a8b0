// SPDX-License-Identifier: Apache-2.0
// Index queues of pages and of chunks.
#pragma once

#include "../heap/default_heap.hpp"
#include "../policy/creation/queue.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

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

#if !defined(__CUDACC_RTC__)
/// Powers of two of up to 8 KiB, from queues of free pages.
using queue_pages_heap = basic_heap<queue_pages_allocator>;
/// Powers of two of up to 8 KiB, from queues of chunks with free pages.
using queue_chunks_heap = basic_heap<queue_chunks_allocator>;
/// Powers of two of up to 8 KiB, from virtual queues of free pages.
using queue_pages_virtual_heap = basic_heap<queue_pages_virtual_allocator>;
/// Powers of two of up to 8 KiB, from virtual queues of chunks with free pages.
using queue_chunks_virtual_heap = basic_heap<queue_chunks_virtual_allocator>;
#endif

}}  // namespace warpheap::WARPHEAP_BACKEND
