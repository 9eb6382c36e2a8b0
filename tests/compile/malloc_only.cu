// SPDX-License-Identifier: Apache-2.0
// One call of malloc and nothing else, for compilers other than nvcc. Read by
// scripts/check_clang.py.
#include <warpheap/warpheap.hpp>

__global__ void malloc_only(warpheap::heap_ref heap, void** results, unsigned long long bytes) {
  results[threadIdx.x] = heap.malloc(bytes);
}
