// One call of malloc and nothing else: what the allocator itself costs a kernel in registers and stack. Read by
// scripts/check_cuda.py.
#include <warpheap/warpheap.hpp>

__global__ void malloc_only(warpheap::heap_ref heap, void** results, unsigned long long bytes) {
  results[threadIdx.x] = heap.malloc(bytes);
}
