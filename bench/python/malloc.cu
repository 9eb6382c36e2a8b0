// SPDX-License-Identifier: Apache-2.0
// The kernels that malloc.py holds against Numba's, and one that keeps the device busy while the
// next are queued.
#include <warpheap/heap/c_functions.hpp>
#include <warpheap/warpheap.hpp>

using allocator = warpheap::default_allocator;

extern "C" __global__ void cpp_malloc(unsigned long long heap, unsigned long long* got, unsigned long long threads) {
  unsigned long long const i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < threads) got[i] = reinterpret_cast<unsigned long long>(warpheap::ref_of<allocator>(heap).malloc(64));
}

extern "C" __global__ void cpp_free(unsigned long long heap, unsigned long long* got, unsigned long long threads) {
  unsigned long long const i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < threads) warpheap::ref_of<allocator>(heap).free(reinterpret_cast<void*>(got[i]));
}

extern "C" __global__ void __launch_bounds__(256, 8)
    cpp_malloc_bounded(unsigned long long heap, unsigned long long* got, unsigned long long threads) {
  unsigned long long const i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < threads) got[i] = reinterpret_cast<unsigned long long>(warpheap::ref_of<allocator>(heap).malloc(64));
}

extern "C" __global__ void occupy(unsigned long long cycles) {
  long long const begin = clock64();
  while (clock64() - begin < static_cast<long long>(cycles)) {
  }
}
