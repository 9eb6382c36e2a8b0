// SPDX-License-Identifier: Apache-2.0
// Kernels that do nothing but call the default allocator. They show what it costs a kernel in
// registers, stack and machine code. Read by scripts/check_registers.py, which limits each of
// these.
#include <warpheap/warpheap.hpp>

namespace {

// Takes a block in place of another, as a list that grows does.
__device__ void replace(warpheap::heap_ref heap, void*& block, unsigned long long bytes) {
  void* const fresh = heap.malloc(bytes);
  heap.free(block);
  block = fresh;
}

}  // namespace

// Plain names, which ptxas and the file of limits give as they stand here.
#define KERNEL(name, bounds, call)                                                                         \
  extern "C" __global__ void bounds name(warpheap::heap_ref heap, void** blocks, unsigned long long bytes, \
                                         unsigned n) {                                                     \
    unsigned const t = blockIdx.x * blockDim.x + threadIdx.x;                                              \
    if (t < n) call;                                                                                       \
  }

KERNEL(one_malloc, , blocks[t] = heap.malloc(bytes))
KERNEL(one_malloc_1024, __launch_bounds__(1024), blocks[t] = heap.malloc(bytes))
KERNEL(one_malloc_256_8, __launch_bounds__(256, 8), blocks[t] = heap.malloc(bytes))
KERNEL(one_free, , heap.free(blocks[t]))
KERNEL(one_free_1024, __launch_bounds__(1024), heap.free(blocks[t]))
KERNEL(malloc_and_free, , replace(heap, blocks[t], bytes))
KERNEL(malloc_and_free_1024, __launch_bounds__(1024), replace(heap, blocks[t], bytes))
KERNEL(one_realloc, , blocks[t] = heap.realloc(blocks[t], bytes))
KERNEL(one_realloc_1024, __launch_bounds__(1024), blocks[t] = heap.realloc(blocks[t], bytes))

// Without a condition too: the script also compiles this one with -maxrregcount=48.
extern "C" __global__ void malloc_only(warpheap::heap_ref heap, void** results, unsigned long long bytes) {
  results[threadIdx.x] = heap.malloc(bytes);
}
