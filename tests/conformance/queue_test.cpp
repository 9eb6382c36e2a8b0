// SPDX-License-Identifier: Apache-2.0
// Index queues. On the CPU every page costs a lane's steps, so chunks have few, and two forms are
// tested, which have all parts between them. On a GPU chunks have 8 KiB, the default, and all four
// forms are tested.
#include "suite.hpp"
#include "warpheap/all.hpp"

namespace {

using namespace warpheap;
using creation::queue_element;
using creation::queue_form;

template <queue_element Element, queue_form Form>
using queue_of = plain_allocator < creation::queue < creation::queue_config {
  .element = Element, .form = Form,
#if !defined(__CUDACC__)
  .chunk_bytes = 1024,
#endif
}
>> ;
using queue_pages = queue_of<queue_element::page, queue_form::fixed>;
using queue_chunks_virtual = queue_of<queue_element::chunk, queue_form::virtual_array>;

WARPHEAP_CONFORMANCE(queue_pages, queue_pages, conformance::contention::sparse, 40);
WARPHEAP_CONFORMANCE(queue_chunks_virtual, queue_chunks_virtual, conformance::contention::sparse, 40);

#if defined(__CUDACC__)
using queue_chunks = queue_of<queue_element::chunk, queue_form::fixed>;
using queue_pages_virtual = queue_of<queue_element::page, queue_form::virtual_array>;

WARPHEAP_CONFORMANCE(queue_chunks, queue_chunks, conformance::contention::sparse);
WARPHEAP_CONFORMANCE(queue_pages_virtual, queue_pages_virtual, conformance::contention::sparse);
#endif

}  // namespace
