// SPDX-License-Identifier: Apache-2.0
// A heap in memory of a CCCL memory resource, as CUDA 13.0 spells it. Compiled by
// scripts/check_memory_resource.py, not run.
#define LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE
#include <cuda/memory_resource>
#include <warpheap/warpheap.hpp>

/// A resource as CCCL's concept asks for it.
struct device_resource {
  void* allocate(std::size_t bytes, std::size_t) {
    void* memory = nullptr;
    if (cudaMalloc(&memory, bytes) != cudaSuccess) throw std::bad_alloc{};
    return memory;
  }
  void deallocate(void* memory, std::size_t, std::size_t) { cudaFree(memory); }
  bool operator==(device_resource const&) const { return true; }
  bool operator!=(device_resource const&) const { return false; }
  friend void get_property(device_resource const&, cuda::mr::device_accessible) {}
};
static_assert(cuda::mr::resource<device_resource>);

using resource_ref = cuda::mr::resource_ref<cuda::mr::device_accessible>;

template <class Resource>
using heap_from = warpheap::basic_heap<
    warpheap::allocator<warpheap::creation::slab_bitmap<>, warpheap::distribution::none, warpheap::oom::return_null,
                        warpheap::reserve_pool::memory_resource<Resource>, warpheap::alignment::shrink<16>>>;

__global__ void allocate(heap_from<resource_ref>::ref_type heap, void** results) { results[0] = heap.malloc(16); }

unsigned long long use() {
  device_resource resource;
  heap_from<resource_ref> const by_reference{1 << 20, warpheap::reserve_pool::memory_resource{resource_ref{resource}}};
  heap_from<device_resource> const by_value{1 << 20, warpheap::reserve_pool::memory_resource{resource}};
  allocate<<<1, 32>>>(by_reference.ref(), nullptr);
  return by_reference.pool_bytes() + by_value.pool_bytes();
}
