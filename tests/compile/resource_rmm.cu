// SPDX-License-Identifier: Apache-2.0
// A heap in memory of RMM's resources, by value and by reference. Compiled by
// scripts/check_memory_resource.py, not run.
#include <rmm/mr/cuda_memory_resource.hpp>
#include <rmm/mr/pool_memory_resource.hpp>
#include <rmm/resource_ref.hpp>
#include <warpheap/warpheap.hpp>

template <class Resource>
using heap_from = warpheap::basic_heap<
    warpheap::allocator<warpheap::creation::slab_bitmap<>, warpheap::distribution::none, warpheap::oom::return_null,
                        warpheap::reserve_pool::memory_resource<Resource>, warpheap::alignment::shrink<16>>>;

unsigned long long use() {
  rmm::mr::cuda_memory_resource upstream;
  heap_from<rmm::mr::cuda_memory_resource> const by_value{1 << 20, warpheap::reserve_pool::memory_resource{upstream}};
  using reference = warpheap::reserve_pool::memory_resource<rmm::mr::cuda_memory_resource&>;
  heap_from<rmm::mr::cuda_memory_resource&> const by_reference{1 << 20, reference{upstream}};
  rmm::mr::pool_memory_resource pool{upstream, 1 << 24};
  rmm::device_async_resource_ref const ref{pool};
  heap_from<rmm::device_async_resource_ref> const by_ref{1 << 20, warpheap::reserve_pool::memory_resource{ref}};
  return by_value.pool_bytes() + by_reference.pool_bytes() + by_ref.pool_bytes();
}
